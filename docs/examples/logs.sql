-- Web servers: what is served in five minutes, an alert while too much of it fails, and who asks for what.
-- Lines are in the combined format of Apache and nginx, with the seconds that each request took behind it.
CREATE STREAM requests (address VARCHAR, ident VARCHAR, login VARCHAR, began VARCHAR, zone VARCHAR, request VARCHAR,
    status INT, bytes BIGINT, referrer VARCHAR, agent VARCHAR, seconds DOUBLE)
  WITH (KAFKA_TOPIC='access', VALUE_FORMAT='DELIMITED', VALUE_DELIMITER='SPACE',
        TIMESTAMP='began', TIMESTAMP_FORMAT='[dd/MMM/yyyy:HH:mm:ss');

CREATE TABLE traffic AS
  SELECT COUNT(*) AS records, SUM(CASE WHEN status >= 500 THEN 1 ELSE 0 END) AS failures,
         APPROX_COUNT_DISTINCT(address) AS visitors, SUM(bytes) AS bytes,
         PERCENTILE_APPROX(seconds, 0.99) AS slowest
  FROM requests WINDOW TUMBLING (SIZE 5 MINUTES, GRACE PERIOD 1 MINUTE);

-- A share, of windows with enough requests to mean something.
CREATE ALERT errors AS
  SELECT SUM(CASE WHEN status >= 500 THEN 1 ELSE 0 END) AS failures, COUNT(*) AS records
  FROM requests WINDOW TUMBLING (SIZE 5 MINUTES, GRACE PERIOD 1 MINUTE)
  HAVING failures / records > 0.05 AND records >= 50 WITH (CLEAR = 0.025, TO = 'log-alerts');

CREATE TABLE days AS
  SELECT APPROX_COUNT_DISTINCT(address) AS visitors, APPROX_TOP_K(agent, 5) AS agents,
         APPROX_TOP_K(SPLIT(request, ' ')[2], 10) AS paths
  FROM requests WINDOW TUMBLING (SIZE 1 DAY, GRACE PERIOD 1 MINUTE);
