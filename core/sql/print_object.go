package sql

// object writes the statements of ast_object.go, ast_prepare.go and ast_macro.go; it reports whether s is one.
func (w *printer) object(s Statement) bool {
	switch s := s.(type) {
	case *Prepare:
		w.put("PREPARE ")
		w.ident(s.Name)
		w.put(" AS ")
		w.statement(s.Statement)
	case *Execute:
		w.put("EXECUTE ")
		w.ident(s.Name)
		if s.Args != nil {
			w.namedArgs(s.Args)
		}
	case *Deallocate:
		w.put("DEALLOCATE ")
		if s.All {
			w.put("ALL")
		} else {
			w.ident(s.Name)
		}
	case *CreateMacro:
		w.macro(s)
	case *CreateSchema:
		w.create(s.OrReplace, false, "SCHEMA ", s.IfNotExists)
		w.name(s.Name)
	case *CreateSequence:
		w.create(s.OrReplace, s.Temp, "SEQUENCE ", s.IfNotExists)
		w.name(s.Name)
		for _, n := range []struct {
			word  string
			value Expr
		}{{" INCREMENT ", s.Increment}, {" MINVALUE ", s.Min}, {" MAXVALUE ", s.Max}, {" START ", s.Start}} {
			if n.value != nil {
				w.put(n.word)
				w.expr(n.value, precSign)
			}
		}
		w.putIf(s.Cycle, " CYCLE")
	case *CreateIndex:
		w.put("CREATE ")
		w.putIf(s.Unique, "UNIQUE ")
		w.put("INDEX ")
		w.putIf(s.IfNotExists, "IF NOT EXISTS ")
		if !s.Name.IsZero() {
			w.ident(s.Name)
			w.put(" ")
		}
		w.put("ON ")
		w.name(s.Table)
		if !s.Method.IsZero() {
			w.put(" USING ")
			w.ident(s.Method)
		}
		w.put(" (")
		w.exprs(s.Keys)
		w.put(")")
	case *Alter:
		w.alter(s)
	case *Comment:
		w.put("COMMENT ON ", s.Kind, " ")
		w.name(s.Name)
		w.put(" IS ")
		if s.Text == nil {
			w.put("NULL")
		} else {
			w.expr(s.Text, 0)
		}
	case *Pragma:
		w.put("PRAGMA ", settingText(s.Name))
		switch {
		case s.Value != nil:
			w.put(" = ")
			w.optionValue(s.Value)
		case s.Args != nil:
			w.namedArgs(s.Args)
		}
	case *SetVariable:
		if s.Value == nil {
			w.put("RESET VARIABLE ")
			w.ident(s.Name)
			break
		}
		w.put("SET VARIABLE ")
		w.ident(s.Name)
		w.put(" = ")
		w.expr(s.Value, 0)
	case *Use:
		w.put("USE ")
		w.name(s.Name)
	case *Maintain:
		w.put(s.What)
		if s.Target != nil {
			w.put(" ")
			w.name(s.Target)
		}
	default:
		return false
	}
	return true
}

func (w *printer) create(replace, temp bool, what string, ifNotExists bool) {
	w.put("CREATE ")
	w.putIf(replace, "OR REPLACE ")
	w.putIf(temp, "TEMP ")
	w.put(what)
	w.putIf(ifNotExists, "IF NOT EXISTS ")
}

func (w *printer) namedArgs(args []Arg) {
	w.put("(")
	w.list(len(args), func(i int) {
		if !args[i].Name.IsZero() {
			w.ident(args[i].Name)
			w.put(" := ")
		}
		w.expr(args[i].Value, 0)
	})
	w.put(")")
}

func (w *printer) macro(s *CreateMacro) {
	w.create(s.OrReplace, s.Temp, "MACRO ", s.IfNotExists)
	w.name(s.Name)
	w.list(len(s.Bodies), func(i int) {
		b := s.Bodies[i]
		w.put("(")
		w.list(len(b.Params), func(i int) {
			m := b.Params[i]
			w.ident(m.Name)
			if m.Type != nil {
				w.put(" ")
				w.typeName(m.Type)
			}
			w.clause(" := ", m.Default)
		})
		w.put(") AS ")
		if b.Query != nil {
			w.put("TABLE ")
			w.parenQuery(b.Query)
			return
		}
		w.expr(b.Expr, 0)
	})
}

func (w *printer) alter(s *Alter) {
	w.put("ALTER ")
	if s.View {
		w.put("VIEW ")
	} else {
		w.put("TABLE ")
	}
	w.putIf(s.IfExists, "IF EXISTS ")
	w.name(s.Name)
	w.put(" ")
	switch s.Kind {
	case AlterRename:
		w.put("RENAME TO ")
		w.ident(s.To)
	case AlterRenameColumn:
		w.put("RENAME COLUMN ")
		w.ident(s.Column)
		w.put(" TO ")
		w.ident(s.To)
	case AlterAddColumn:
		w.put("ADD COLUMN ")
		w.putIf(s.ColumnIf, "IF NOT EXISTS ")
		w.column(*s.Add)
	case AlterDropColumn:
		w.put("DROP COLUMN ")
		w.putIf(s.ColumnIf, "IF EXISTS ")
		w.ident(s.Column)
	case AlterAddKey:
		w.put("ADD ")
		w.constraint(*s.Constraint)
	default:
		w.put("ALTER COLUMN ")
		w.ident(s.Column)
		w.put(" ", string(s.Kind))
		switch s.Kind {
		case AlterType:
			w.put(" ")
			w.typeName(s.Type)
			w.clause(" USING ", s.Value)
		case AlterSetDefault:
			w.put(" ")
			w.expr(s.Value, precOp)
		}
	}
}
