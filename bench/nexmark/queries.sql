-- NEXMark, one text for both modes. Streams: person, auction, bid; watermark: dateTime - INTERVAL '4 seconds'.

-- name: q0
SELECT auction, bidder, price, dateTime, extra FROM bid;

-- name: q1
SELECT auction, bidder, price * 0.908 AS price, dateTime, extra FROM bid;

-- name: q2
SELECT auction, price FROM bid WHERE auction % 123 = 0;

-- name: q3
SELECT p.name, p.city, p.state, a.id
FROM auction a JOIN person p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA');

-- name: q4
SELECT category, avg(final) AS final
FROM (SELECT a.id, a.category, max(b.price) AS final
      FROM auction a JOIN bid b ON a.id = b.auction
      WHERE b.dateTime BETWEEN a.dateTime AND a.expires
      GROUP BY a.id, a.category)
GROUP BY category;

-- name: q5
WITH counts AS (
  SELECT auction, count(*) AS num, HOP_START(dateTime, INTERVAL '2 seconds', INTERVAL '10 seconds') AS starttime
  FROM bid GROUP BY auction, HOP(dateTime, INTERVAL '2 seconds', INTERVAL '10 seconds'))
SELECT c.auction, c.num, c.starttime
FROM counts c JOIN (SELECT starttime, max(num) AS maxn FROM counts GROUP BY starttime) m
  ON c.starttime = m.starttime AND c.num >= m.maxn
EMIT IMMEDIATE;

-- name: q7
WITH m AS (
  SELECT TUMBLE_START(dateTime, INTERVAL '10 seconds') AS starttime, TUMBLE_END(dateTime, INTERVAL '10 seconds') AS endtime, max(price) AS maxprice
  FROM bid GROUP BY TUMBLE(dateTime, INTERVAL '10 seconds'))
SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra
FROM bid b JOIN m ON b.price = m.maxprice AND b.dateTime >= m.starttime AND b.dateTime < m.endtime
EMIT IMMEDIATE;

-- name: q8
SELECT p.id, p.name, p.starttime
FROM (SELECT id, name, TUMBLE_START(dateTime, INTERVAL '10 seconds') AS starttime
      FROM person GROUP BY id, name, TUMBLE(dateTime, INTERVAL '10 seconds')) p
JOIN (SELECT seller, TUMBLE_START(dateTime, INTERVAL '10 seconds') AS starttime
      FROM auction GROUP BY seller, TUMBLE(dateTime, INTERVAL '10 seconds')) a
  ON p.id = a.seller AND p.starttime = a.starttime
EMIT IMMEDIATE;

-- name: q9
SELECT id, itemName, initialBid, seller, category, auction, bidder, price, bidTime
FROM (SELECT a.id, a.itemName, a.initialBid, a.seller, a.category, b.auction, b.bidder, b.price, b.dateTime AS bidTime,
             row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.dateTime, b.bidder) AS place
      FROM auction a JOIN bid b ON a.id = b.auction
      WHERE b.dateTime BETWEEN a.dateTime AND a.expires)
WHERE place <= 1;

-- name: q13
SELECT b.auction, b.bidder, b.price, b.dateTime, s.value
FROM bid b JOIN side s ON b.auction % 10000 = s.key;

-- name: q14
SELECT auction, bidder, price * 0.908 AS price,
       CASE WHEN hour(dateTime) BETWEEN 8 AND 18 THEN 'dayTime' WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS bidTimeType,
       dateTime, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid WHERE price * 0.908 > 1000000 AND price * 0.908 < 50000000;

-- name: q15
SELECT strftime(dateTime, '%Y-%m-%d') AS day, count(*) AS total,
       count(*) FILTER (WHERE price < 10000) AS r1, count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS r2, count(*) FILTER (WHERE price >= 1000000) AS r3,
       count(DISTINCT bidder) AS tb, count(DISTINCT bidder) FILTER (WHERE price < 10000) AS b1,
       count(DISTINCT auction) AS ta, count(DISTINCT auction) FILTER (WHERE price < 10000) AS a1
FROM bid GROUP BY strftime(dateTime, '%Y-%m-%d');

-- name: q17
SELECT auction, strftime(dateTime, '%Y-%m-%d') AS day, count(*) AS total,
       count(*) FILTER (WHERE price < 10000) AS r1, count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS r2, count(*) FILTER (WHERE price >= 1000000) AS r3,
       min(price) AS mn, max(price) AS mx, avg(price) AS av, sum(price) AS sm
FROM bid GROUP BY auction, strftime(dateTime, '%Y-%m-%d');

-- name: q18
SELECT auction, bidder, price, dateTime
FROM (SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) AS rn FROM bid) WHERE rn <= 1;

-- name: q19
SELECT auction, bidder, price, rn
FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS rn FROM bid) WHERE rn <= 10;

-- name: q20
SELECT b.auction, b.bidder, b.price, b.channel, a.itemName, a.initialBid
FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10;

-- name: q21
SELECT auction, bidder, price, channel,
       CASE WHEN lower(channel) = 'apple' THEN '0' WHEN lower(channel) = 'google' THEN '1' WHEN lower(channel) = 'facebook' THEN '2' WHEN lower(channel) = 'baidu' THEN '3'
            ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
FROM bid
WHERE regexp_matches(url, '(&|^)channel_id=') OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu');

-- name: q22
SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3 FROM bid;

-- name: tumble
SELECT auction, TUMBLE_START(dateTime, INTERVAL '10 seconds') AS starttime, count(*) AS n
FROM bid GROUP BY auction, TUMBLE(dateTime, INTERVAL '10 seconds') EMIT ON WATERMARK;
