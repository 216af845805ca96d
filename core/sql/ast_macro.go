package sql

// CreateMacro is CREATE MACRO or FUNCTION name (a, b := 1) AS expr, or AS TABLE query. One name may have several
// bodies, which take different numbers of arguments.
type CreateMacro struct {
	At
	OrReplace   bool
	Temp        bool
	IfNotExists bool
	Name        Name
	Bodies      []MacroBody
}

// MacroBody is one of the bodies of a macro; exactly one of Expr and Query is given.
type MacroBody struct {
	At
	Params []MacroParam
	Expr   Expr
	Query  *Query
}

// MacroParam is a parameter of a macro.
type MacroParam struct {
	Name    Ident
	Type    *TypeName // nil when absent: the argument's own
	Default Expr      // nil when an argument must be given
}

func (*CreateMacro) statement() {}
