-- A social stream, Bluesky's Jetstream: how much is posted, by how many, and each tag's authors.
CREATE STREAM jetstream (did VARCHAR, time_us BIGINT, kind VARCHAR,
    "commit" STRUCT<operation VARCHAR, collection VARCHAR, rkey VARCHAR, record STRUCT<text VARCHAR,
      langs ARRAY<VARCHAR>, facets ARRAY<STRUCT<features ARRAY<STRUCT<tag VARCHAR, uri VARCHAR>>>>>>)
  WITH (KAFKA_TOPIC='jetstream', VALUE_FORMAT='JSON');

-- Its times are in microseconds, which a TIMESTAMP of the topic can't be: the posts are a stream of their own.
CREATE STREAM posts AS
  SELECT FROM_UNIXTIME(time_us / 1000) AS at, did AS author, "commit"->rkey AS id,
         "commit"->record->langs[1] AS lang, "commit"->record->facets AS facets
  FROM jetstream
  WHERE "commit"->operation = 'create' AND "commit"->collection = 'app.bsky.feed.post';

CREATE TABLE volume AS
  SELECT COUNT(*) AS posts, APPROX_COUNT_DISTINCT(author) AS authors
  FROM TUMBLE(posts, at, INTERVAL '5' MINUTES) GROUP BY window_start;

CREATE STREAM features AS SELECT at, author, id, EXPLODE(facets) AS facet FROM posts;
CREATE STREAM tags AS
  SELECT at, author, id, feature->tag AS tag
  FROM features CROSS JOIN UNNEST(facet->features) AS t(feature) WHERE feature->tag IS NOT NULL;

-- LOWER_BOUND: of ten authors at least it is certain.
CREATE TABLE trends AS
  SELECT tag, APPROX_COUNT_DISTINCT(id) AS posts, APPROX_COUNT_DISTINCT(author) AS authors
  FROM TUMBLE(tags, at, INTERVAL '5' MINUTES) GROUP BY tag, window_start
  HAVING LOWER_BOUND(APPROX_COUNT_DISTINCT(author)) >= 10;
