-- Sorting the table of groupby. The leading columns of an answer are those of its ORDER BY.

-- name: integer
SELECT id6 FROM x ORDER BY id6;

-- name: double
SELECT v3 FROM x ORDER BY v3 DESC;

-- name: text
SELECT id3 FROM x ORDER BY id3;

-- name: several
SELECT id1, id4, v3 FROM x ORDER BY id1, id4 DESC, v3;

-- name: payload
SELECT id6, v3, id1, id2, id3, id4, id5, v1, v2 FROM x ORDER BY id6, v3;

-- name: top
SELECT v3, id6, id1, id2, id3, id4, id5, v1, v2 FROM x ORDER BY v3 DESC, id6, id3, id1, id2 LIMIT 100;

-- name: top_text
SELECT id3, v3, id6 FROM x ORDER BY id3, v3, id6 LIMIT 1000;

-- name: page
SELECT id6, v3, id3 FROM x ORDER BY id6, v3, id3 LIMIT 100 OFFSET 500000;
