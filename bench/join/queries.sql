-- The five joins of the H2O.ai database benchmark; every answer is the whole joined table.

-- name: q1
SELECT x.*, small.id4 AS small_id4, v2 FROM jx AS x JOIN small ON x.id1 = small.id1;

-- name: q2
SELECT x.*, medium.id1 AS medium_id1, medium.id4 AS medium_id4, medium.id5 AS medium_id5, v2
FROM jx AS x JOIN medium ON x.id2 = medium.id2;

-- name: q3
SELECT x.*, medium.id1 AS medium_id1, medium.id4 AS medium_id4, medium.id5 AS medium_id5, v2
FROM jx AS x LEFT JOIN medium ON x.id2 = medium.id2;

-- name: q4
SELECT x.*, medium.id1 AS medium_id1, medium.id2 AS medium_id2, medium.id4 AS medium_id4, v2
FROM jx AS x JOIN medium ON x.id5 = medium.id5;

-- name: q5
SELECT x.*, big.id1 AS big_id1, big.id2 AS big_id2, big.id4 AS big_id4, big.id5 AS big_id5, big.id6 AS big_id6, v2
FROM jx AS x JOIN big ON x.id3 = big.id3;
