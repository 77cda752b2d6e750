-- Alerts of a sky survey, as the broker Fink sends them: each night's, and each object's brightest.
CREATE STREAM alerts ("objectId" VARCHAR, candid BIGINT,
    candidate STRUCT<jd DOUBLE, fid INT, ra DOUBLE, dec DOUBLE, magpsf DOUBLE, drb DOUBLE>)
  WITH (KAFKA_TOPIC='alerts', VALUE_FORMAT='JSON');

-- Nights go by when alerts are sent; FROM_UNIXTIME((jd - 2440587.5) * 86400000) would be when they were seen.
CREATE STREAM looks AS
  SELECT ROWTIME AS at, "objectId" AS object, candidate->magpsf AS mag, candidate->ra AS ra,
         candidate->dec AS dec, candidate->drb AS drb
  FROM alerts;

CREATE TABLE nights AS
  SELECT COUNT(*) AS alerts, APPROX_COUNT_DISTINCT(object) AS objects, PERCENTILE_APPROX(mag, 0.5) AS median
  FROM TUMBLE(looks, at, INTERVAL '1' DAY) GROUP BY window_start;

CREATE TABLE objects AS
  SELECT object, COUNT(*) AS alerts, MIN(mag) AS brightest, LAST(ra) AS ra, LAST(dec) AS dec
  FROM TUMBLE(looks, at, INTERVAL '1' DAY) GROUP BY object, window_start;

-- A real and bright source, of an object that was seen often enough.
CREATE ALERT bright AS
  SELECT object, MIN(mag) AS mag FROM TUMBLE(looks, at, INTERVAL '1' DAY) WHERE drb > 0.9
  GROUP BY object, window_start HAVING MIN(mag) < 17 AND COUNT(*) >= 2 WITH (TO = 'bright-objects');
