-- Window functions over rows in partitions of about a hundred (p) and of a hundredth of the table (g). t is unique, v has ties.

-- name: row_number
SELECT t, row_number() OVER (PARTITION BY p ORDER BY t) FROM w;

-- name: rank
SELECT t, rank() OVER (PARTITION BY g ORDER BY v) FROM w;

-- name: neighbours
SELECT t, lag(v) OVER (PARTITION BY p ORDER BY t), lead(d, 2) OVER (PARTITION BY p ORDER BY t) FROM w;

-- name: first_last
SELECT t, first_value(d) OVER o, last_value(v) OVER o FROM w WINDOW o AS (PARTITION BY p ORDER BY t ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING);

-- name: partition
SELECT t, sum(d) OVER (PARTITION BY p), max(v) OVER (PARTITION BY p) FROM w;

-- name: running_rows
SELECT t, sum(v) OVER (PARTITION BY g ORDER BY t ROWS UNBOUNDED PRECEDING) FROM w;

-- name: running_range
SELECT t, sum(v) OVER (PARTITION BY g ORDER BY v) FROM w;

-- name: moving_mean
SELECT t, avg(d) OVER (PARTITION BY p ORDER BY t ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) FROM w;

-- name: moving_extremes
SELECT t, min(d) OVER o, max(d) OVER o FROM w WINDOW o AS (PARTITION BY g ORDER BY t ROWS BETWEEN 50 PRECEDING AND 50 FOLLOWING);

-- name: range
SELECT t, sum(v) OVER (PARTITION BY g ORDER BY s RANGE BETWEEN INTERVAL '1 minute' PRECEDING AND CURRENT ROW) FROM w;

-- name: groups
SELECT t, count(*) OVER (PARTITION BY p ORDER BY v GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM w;

-- name: exclude
SELECT t, sum(v) OVER (PARTITION BY p ORDER BY t ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING EXCLUDE CURRENT ROW) FROM w;

-- name: all_row_number
SELECT t, row_number() OVER (ORDER BY t DESC) FROM w;

-- name: all_running
SELECT t, sum(d) OVER (ORDER BY t ROWS UNBOUNDED PRECEDING) FROM w;

-- name: shares
SELECT t, percent_rank() OVER o, ntile(10) OVER o FROM w WINDOW o AS (PARTITION BY g ORDER BY t);

-- name: distinct
SELECT t, count(DISTINCT v) OVER (PARTITION BY p ORDER BY t) FROM w;

-- name: deviation
SELECT t, stddev(d) OVER (PARTITION BY p ORDER BY t ROWS BETWEEN 20 PRECEDING AND CURRENT ROW) FROM w;

-- name: qualify
SELECT p, t, d FROM w QUALIFY d > 1.9 * avg(d) OVER (PARTITION BY p);
