"""Running streams directly on Kafka.

Terms of this package and of the Spark package, each with one meaning:

- definition: the definition of a stream (`definition.stream.Stream`); it knows no engine.
- source: where a stream's rows come from, a topic or frames (`definition.sources`).
- run plan: the task of the members of one run (`consumer.run_plan.Plan`).
- options: how to run a stream, independent of its definition (`consumer.options.RunOptions`).
- position: an input partition's next offset and its event time there (`watermarks.position.Position`).
- mark: what closing windows needs of a partition: its position and silence
  (`watermarks.global_watermark.Mark`).
- pane: the interval of event time by which rows are sketched; windows consist of whole panes.
- delta: the sketches of a range of one partition's offsets (`sketching.delta.Delta`).
- log: the table topic, which contains deltas and snapshots (`consumer.log`).
- topic partition: a topic's name and a partition's number (`kafka.source.TopicPartition`).
"""
