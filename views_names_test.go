package riverbed

import "testing"

// Two columns of one name differ in a materialized view as DuckDB makes them differ in a table: v, v_1.
func TestViewsTellColumnsOfOneNameApart(t *testing.T) {
	d := openDB(t)
	d.run("CREATE TABLE a (k INTEGER, v INTEGER)")
	d.run("CREATE TABLE b (k INTEGER, v INTEGER)")
	d.run("CREATE MATERIALIZED VIEW j AS SELECT a.v, b.v, b.k FROM a JOIN b USING (k)")
	d.run("INSERT INTO a VALUES (1, 10)")
	d.run("INSERT INTO b VALUES (1, 20)")
	d.is("SELECT v, v_1, k FROM j", "10|20|1")
}
