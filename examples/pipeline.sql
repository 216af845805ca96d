-- Sky alerts, counted by filter and ten minutes; each window is written once it has closed.
--
--   riverbed run examples/pipeline.sql
--
-- With connector = 'kafka', brokers = '…', topic = '…' the same text runs for ever.

CREATE STREAM alerts (WATERMARK FOR ts AS ts - INTERVAL '1 minute')
  WITH (connector = 'generator', kind = 'sky_alerts', rows = 100000);

CREATE SINK windows WITH (connector = 'json', path = 'windows.jsonl');

INSERT INTO windows
SELECT filter,
       TUMBLE_START(ts, INTERVAL '10 minutes') AS window_start,
       count(*)                                AS alerts,
       avg(mag)                                AS mean_mag
FROM alerts
GROUP BY filter, TUMBLE(ts, INTERVAL '10 minutes')
EMIT ON WATERMARK;
