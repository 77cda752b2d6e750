-- Trades as Binance's websocket sends them: bars of a minute, who sold and bought, and an alert on a large turnover.
CREATE STREAM trades (e VARCHAR, s VARCHAR, p VARCHAR, q VARCHAR, "T" BIGINT, m BOOLEAN)
  WITH (KAFKA_TOPIC='trades', VALUE_FORMAT='JSON', TIMESTAMP='"T"');

CREATE TABLE minutes AS
  SELECT s AS symbol, FIRST(CAST(p AS DOUBLE)) AS open, MAX(CAST(p AS DOUBLE)) AS high,
         MIN(CAST(p AS DOUBLE)) AS low, LAST(CAST(p AS DOUBLE)) AS close,
         SUM(CAST(q AS DOUBLE)) AS volume, SUM(CAST(p AS DOUBLE) * CAST(q AS DOUBLE)) AS value, COUNT(*) AS trades
  FROM trades WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 5 SECONDS)
  WHERE e = 'trade' GROUP BY s;

CREATE TABLE flow AS
  SELECT s AS symbol, COUNT(*) AS trades,
         SUM(CAST(q AS DOUBLE)) FILTER (WHERE NOT m) AS bought, SUM(CAST(q AS DOUBLE)) FILTER (WHERE m) AS sold
  FROM trades WINDOW TUMBLING (SIZE 1 DAY, GRACE PERIOD 5 SECONDS)
  WHERE e = 'trade' GROUP BY s;

CREATE ALERT turnover AS
  SELECT s, SUM(CAST(p AS DOUBLE) * CAST(q AS DOUBLE)) AS value
  FROM trades WINDOW TUMBLING (SIZE 1 MINUTE, GRACE PERIOD 5 SECONDS) WHERE e = 'trade' GROUP BY s
  HAVING SUM(CAST(p AS DOUBLE) * CAST(q AS DOUBLE)) > 100000 WITH (COOLDOWN = '10m', TO = 'trade-alerts');
