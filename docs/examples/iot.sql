-- Sensors: what each measured in a day, and an alert while one is too hot.
CREATE STREAM readings (time TIMESTAMP, sensor VARCHAR, value DOUBLE)
  WITH (KAFKA_TOPIC='readings', VALUE_FORMAT='JSON', TIMESTAMP='time');

CREATE TABLE days AS
  SELECT sensor, COUNT(*) AS readings, MIN(value) AS low, MAX(value) AS high,
         PERCENTILE_APPROX(value, 0.5) AS median
  FROM readings WINDOW TUMBLING (SIZE 1 DAY, GRACE PERIOD 10 SECONDS) GROUP BY sensor;

-- It fires at 30 °C and clears below 28 °C.
CREATE ALERT hot AS
  SELECT sensor, MAX(value) AS value
  FROM readings WINDOW TUMBLING (SIZE 10 SECONDS, GRACE PERIOD 10 SECONDS) GROUP BY sensor
  HAVING MAX(value) >= 30 WITH (CLEAR = 28, TO = 'sensor-alerts');
