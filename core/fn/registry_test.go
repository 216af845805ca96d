package fn

import "testing"

// Every entry can be printed in the reference: it has a category, a summary and examples, and each of its overloads can run.
func TestRegistryIsComplete(t *testing.T) {
	for _, f := range All {
		if f.Category == "" || f.Summary == "" || len(f.Examples) == 0 {
			t.Errorf("%s lacks a category, a summary or an example", f.Name)
		}
		for i := range f.Overloads {
			if o := &f.Overloads[i]; o.Kernel == nil && o.Resolve == nil && f.Lambda == nil {
				t.Errorf("%s has no kernel", o.signature(f.Name))
			}
		}
	}
	t.Logf("%d functions and operators", len(All))
}
