"""How does it run straight off Kafka?

The words of this floor and of Spark's, each with one meaning:

- definition: the definition of a stream (`definition.stream.Stream`); it knows no engine.
- source: where a stream's rows come from, a topic or frames (`definition.sources`).
- run plan: what the members of one run are to do (`consumer.run_plan.Plan`).
- options: how a run goes, whatever the stream (`consumer.options.RunOptions`).
- position: how far an input partition is, its next offset and its event time (`sketching.position.Position`).
- mark: a partition as the closing of windows sees it: position and silence
(`sketching.global_watermark.Mark`).
- pane: the stretch of event time by which rows are sketched; windows are made of whole panes.
- delta: the sketches of a range of one partition's offsets (`sketching.delta.Delta`).
- log: the table topic, on which deltas and snapshots lie (`consumer.log`).
- topic partition: a topic's name and a partition's number (`kafka.source.TopicPartition`).
"""
