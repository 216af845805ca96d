-- The ten grouping questions of the H2O.ai database benchmark, and two that show what an exact sum of doubles costs.

-- name: q1
SELECT id1, sum(v1) AS v1 FROM x GROUP BY id1;

-- name: q2
SELECT id1, id2, sum(v1) AS v1 FROM x GROUP BY id1, id2;

-- name: q3
SELECT id3, sum(v1) AS v1, avg(v3) AS v3 FROM x GROUP BY id3;

-- name: q4
SELECT id4, avg(v1) AS v1, avg(v2) AS v2, avg(v3) AS v3 FROM x GROUP BY id4;

-- name: q5
SELECT id6, sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3 FROM x GROUP BY id6;

-- name: q6
SELECT id4, id5, median(v3) AS median_v3, stddev(v3) AS sd_v3 FROM x GROUP BY id4, id5;

-- name: q7
SELECT id3, max(v1) - min(v2) AS range_v1_v2 FROM x GROUP BY id3;

-- name: q8
SELECT id6, v3 AS largest2_v3
FROM (SELECT id6, v3, row_number() OVER (PARTITION BY id6 ORDER BY v3 DESC) AS place FROM x WHERE v3 IS NOT NULL) AS t
WHERE place <= 2;

-- name: q9
SELECT id2, id4, power(corr(v1, v2), 2) AS r2 FROM x GROUP BY id2, id4;

-- name: q10
SELECT id1, id2, id3, id4, id5, id6, sum(v3) AS v3, count(*) AS n FROM x GROUP BY id1, id2, id3, id4, id5, id6;

-- name: few_double
SELECT id4, sum(v3) AS v3 FROM x GROUP BY id4;

-- name: few_integer
SELECT id4, sum(v2) AS v2 FROM x GROUP BY id4;

-- name: many_double
SELECT id6, sum(v3) AS v3 FROM x GROUP BY id6;

-- name: many_integer
SELECT id6, sum(v2) AS v2 FROM x GROUP BY id6;
