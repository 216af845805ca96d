-- The 43 questions of ClickBench, asked in our own words of the table that data.py makes. Where the original leaves the
-- order of equal rows open, ours is given to the end, so that answers can be compared. {few}, {some} and {page} are
-- thresholds that grow with the table.

-- name: q1
SELECT count(*) AS n FROM hits;

-- name: q2
SELECT count(*) AS n FROM hits WHERE adv_engine_id <> 0;

-- name: q3
SELECT sum(adv_engine_id) AS adv, count(*) AS n, avg(resolution_width) AS width FROM hits;

-- name: q4
SELECT avg(user_id) AS mean FROM hits;

-- name: q5
SELECT count(DISTINCT user_id) AS users FROM hits;

-- name: q6
SELECT count(DISTINCT search_phrase) AS phrases FROM hits;

-- name: q7
SELECT min(event_date) AS first_day, max(event_date) AS last_day FROM hits;

-- name: q8
SELECT adv_engine_id, count(*) AS n FROM hits WHERE adv_engine_id <> 0 GROUP BY adv_engine_id ORDER BY n DESC, adv_engine_id;

-- name: q9
SELECT region_id, count(DISTINCT user_id) AS users FROM hits GROUP BY region_id ORDER BY users DESC, region_id LIMIT 10;

-- name: q10
SELECT region_id, sum(adv_engine_id) AS adv, count(*) AS n, avg(resolution_width) AS width, count(DISTINCT user_id) AS users
FROM hits GROUP BY region_id ORDER BY n DESC, region_id LIMIT 10;

-- name: q11
SELECT mobile_phone_model, count(DISTINCT user_id) AS users
FROM hits WHERE mobile_phone_model <> '' GROUP BY mobile_phone_model ORDER BY users DESC, mobile_phone_model LIMIT 10;

-- name: q12
SELECT mobile_phone, mobile_phone_model, count(DISTINCT user_id) AS users
FROM hits WHERE mobile_phone_model <> '' GROUP BY mobile_phone, mobile_phone_model
ORDER BY users DESC, mobile_phone, mobile_phone_model LIMIT 10;

-- name: q13
SELECT search_phrase, count(*) AS n FROM hits WHERE search_phrase <> '' GROUP BY search_phrase ORDER BY n DESC, search_phrase LIMIT 10;

-- name: q14
SELECT search_phrase, count(DISTINCT user_id) AS users
FROM hits WHERE search_phrase <> '' GROUP BY search_phrase ORDER BY users DESC, search_phrase LIMIT 10;

-- name: q15
SELECT search_engine_id, search_phrase, count(*) AS n
FROM hits WHERE search_phrase <> '' GROUP BY search_engine_id, search_phrase
ORDER BY n DESC, search_engine_id, search_phrase LIMIT 10;

-- name: q16
SELECT user_id, count(*) AS n FROM hits GROUP BY user_id ORDER BY n DESC, user_id LIMIT 10;

-- name: q17
SELECT user_id, search_phrase, count(*) AS n FROM hits GROUP BY user_id, search_phrase ORDER BY n DESC, user_id, search_phrase LIMIT 10;

-- name: q18
SELECT user_id, search_phrase, count(*) AS n FROM hits GROUP BY user_id, search_phrase ORDER BY user_id, search_phrase LIMIT 10;

-- name: q19
SELECT user_id, extract(minute FROM event_time) AS minute, search_phrase, count(*) AS n
FROM hits GROUP BY user_id, extract(minute FROM event_time), search_phrase
ORDER BY n DESC, user_id, minute, search_phrase LIMIT 10;

-- name: q20
SELECT user_id FROM hits WHERE user_id = {user};

-- name: q21
SELECT count(*) AS n FROM hits WHERE url LIKE '%google%';

-- name: q22
SELECT search_phrase, min(url) AS url, count(*) AS n
FROM hits WHERE url LIKE '%google%' AND search_phrase <> '' GROUP BY search_phrase ORDER BY n DESC, search_phrase LIMIT 10;

-- name: q23
SELECT search_phrase, min(url) AS url, min(title) AS title, count(*) AS n, count(DISTINCT user_id) AS users
FROM hits WHERE title LIKE '%Google%' AND url NOT LIKE '%.google.%' AND search_phrase <> ''
GROUP BY search_phrase ORDER BY n DESC, search_phrase LIMIT 10;

-- name: q24
SELECT * FROM hits WHERE url LIKE '%google%' ORDER BY event_time, watch_id LIMIT 10;

-- name: q25
SELECT search_phrase FROM hits WHERE search_phrase <> '' ORDER BY event_time, watch_id LIMIT 10;

-- name: q26
SELECT search_phrase FROM hits WHERE search_phrase <> '' ORDER BY search_phrase LIMIT 10;

-- name: q27
SELECT search_phrase FROM hits WHERE search_phrase <> '' ORDER BY event_time, search_phrase LIMIT 10;

-- name: q28
SELECT counter_id, avg(length(url)) AS mean, count(*) AS n
FROM hits WHERE url <> '' GROUP BY counter_id HAVING count(*) > {some} ORDER BY mean DESC, counter_id LIMIT 25;

-- name: q29
SELECT regexp_replace(referer, '^https?://(?:www\.)?([^/]+)/.*$', '\1') AS host, avg(length(referer)) AS mean, count(*) AS n, min(referer) AS least
FROM hits WHERE referer <> '' GROUP BY host HAVING count(*) > {some} ORDER BY mean DESC, host LIMIT 25;

-- name: q30
SELECT {sums} FROM hits;

-- name: q31
SELECT search_engine_id, client_ip, count(*) AS n, sum(is_refresh) AS refreshed, avg(resolution_width) AS width
FROM hits WHERE search_phrase <> '' GROUP BY search_engine_id, client_ip
ORDER BY n DESC, search_engine_id, client_ip LIMIT 10;

-- name: q32
SELECT watch_id, client_ip, count(*) AS n, sum(is_refresh) AS refreshed, avg(resolution_width) AS width
FROM hits WHERE search_phrase <> '' GROUP BY watch_id, client_ip ORDER BY n DESC, watch_id, client_ip LIMIT 10;

-- name: q33
SELECT watch_id, client_ip, count(*) AS n, sum(is_refresh) AS refreshed, avg(resolution_width) AS width
FROM hits GROUP BY watch_id, client_ip ORDER BY n DESC, watch_id, client_ip LIMIT 10;

-- name: q34
SELECT url, count(*) AS n FROM hits GROUP BY url ORDER BY n DESC, url LIMIT 10;

-- name: q35
SELECT 1 AS one, url, count(*) AS n FROM hits GROUP BY one, url ORDER BY n DESC, url LIMIT 10;

-- name: q36
SELECT client_ip, client_ip - 1 AS one_less, client_ip - 2 AS two_less, client_ip - 3 AS three_less, count(*) AS n
FROM hits GROUP BY client_ip, client_ip - 1, client_ip - 2, client_ip - 3 ORDER BY n DESC, client_ip LIMIT 10;

-- name: q37
SELECT url, count(*) AS views FROM hits
WHERE counter_id = 62 AND event_date BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND dont_count_hits = 0 AND is_refresh = 0 AND url <> ''
GROUP BY url ORDER BY views DESC, url LIMIT 10;

-- name: q38
SELECT title, count(*) AS views FROM hits
WHERE counter_id = 62 AND event_date BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND dont_count_hits = 0 AND is_refresh = 0 AND title <> ''
GROUP BY title ORDER BY views DESC, title LIMIT 10;

-- name: q39
SELECT url, count(*) AS views FROM hits
WHERE counter_id = 62 AND event_date BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND is_refresh = 0 AND is_link <> 0 AND is_download = 0
GROUP BY url ORDER BY views DESC, url LIMIT 10 OFFSET {page};

-- name: q40
SELECT traffic_source_id, search_engine_id, adv_engine_id,
       CASE WHEN search_engine_id = 0 AND adv_engine_id = 0 THEN referer ELSE '' END AS source, url AS target, count(*) AS views
FROM hits
WHERE counter_id = 62 AND event_date BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND is_refresh = 0
GROUP BY traffic_source_id, search_engine_id, adv_engine_id, source, target
ORDER BY views DESC, traffic_source_id, search_engine_id, adv_engine_id, source, target LIMIT 10 OFFSET {page};

-- name: q41
SELECT url_hash, event_date, count(*) AS views FROM hits
WHERE counter_id = 62 AND event_date BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND is_refresh = 0
  AND traffic_source_id IN (-1, 6) AND referer_hash = {hash}
GROUP BY url_hash, event_date ORDER BY views DESC, url_hash, event_date LIMIT 10 OFFSET 100;

-- name: q42
SELECT window_width, window_height, count(*) AS views FROM hits
WHERE counter_id = 62 AND event_date BETWEEN DATE '2013-07-01' AND DATE '2013-07-31' AND is_refresh = 0 AND dont_count_hits = 0
  AND url_hash = {hash}
GROUP BY window_width, window_height ORDER BY views DESC, window_width, window_height LIMIT 10 OFFSET {page};

-- name: q43
SELECT date_trunc('minute', event_time) AS minute, count(*) AS views FROM hits
WHERE counter_id = 62 AND event_date BETWEEN DATE '2013-07-14' AND DATE '2013-07-15' AND is_refresh = 0 AND dont_count_hits = 0
GROUP BY minute ORDER BY minute LIMIT 10 OFFSET {page};
