// Flink's DataStream for `bench curves`: keyed windows of events, aggregated in state on the heap, two tasks.
//
// bootstrap= topic= format=json|avro|protobuf|csv messages= aggregates= window=tumbling|hopping|session length=
// step= (ms) joined=|table|events within= (ms). No checkpoints, as is Flink's default.

import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

public class FlinkCurve {
    public static void main(String[] arguments) throws Exception {
        Curve.begin(arguments);
        Configuration settings = new Configuration();
        settings.set(PipelineOptions.OBJECT_REUSE, true);
        settings.set(RestartStrategyOptions.RESTART_STRATEGY, "none"); // a fault is to be seen
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(2, settings);
        DataStream<Curve.Event> events = events(environment, Curve.text("topic"));
        switch (Curve.text("joined")) {
            case "table":
                events = FlinkJoins.withTable(events, environment);
                break;
            case "events":
                events = FlinkJoins.withEvents(events, events(environment, Curve.text("topic") + "-events"));
                break;
            default:
        }
        events.keyBy(event -> event.k)
            .window(windows())
            .aggregate(new Aggregation(), new Closing())
            .sinkTo(new DiscardingSink<>());
        environment.execute();
        System.out.println(Curve.json());
        System.exit(0);
    }

    private static DataStream<Curve.Event> events(StreamExecutionEnvironment environment, String topic) {
        KafkaSource<Curve.Event> source = KafkaSource.<Curve.Event>builder()
            .setBootstrapServers(Curve.text("bootstrap"))
            .setTopics(topic)
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setBounded(OffsetsInitializer.latest())
            .setValueOnlyDeserializer(FlinkFormats.of(Curve.text("format")))
            .setProperty("max.poll.records", "10000")
            .setProperty("max.partition.fetch.bytes", String.valueOf(4 << 20))
            .setProperty("receive.buffer.bytes", String.valueOf(1 << 20))
            .build();
        WatermarkStrategy<Curve.Event> times = WatermarkStrategy
            .<Curve.Event>forMonotonousTimestamps()
            .withTimestampAssigner((event, before) -> event.ts);
        return environment.fromSource(source, times, "events")
            .map(new Counting()).returns(Types.POJO(Curve.Event.class));
    }

    private static WindowAssigner<Object, TimeWindow> windows() {
        Duration length = Duration.ofMillis(Curve.number("length")), step = Duration.ofMillis(Curve.number("step"));
        switch (Curve.text("window")) {
            case "hopping":
                return SlidingEventTimeWindows.of(length, step);
            case "session":
                return (WindowAssigner<Object, TimeWindow>) (WindowAssigner<?, ?>) EventTimeSessionWindows.withGap(length);
            default:
                return TumblingEventTimeWindows.of(length);
        }
    }

    private static class Counting extends RichMapFunction<Curve.Event, Curve.Event> {
        private transient int uncounted;

        @Override
        public void open(OpenContext context) {
            uncounted = 0;
        }

        @Override
        public Curve.Event map(Curve.Event event) {
            if (++uncounted == 1000) {
                Curve.read(uncounted);
                uncounted = 0;
            }
            return event;
        }
    }

    private static class Aggregation implements AggregateFunction<Curve.Event, Curve.State, Curve.State> {
        @Override
        public Curve.State createAccumulator() {
            return new Curve.State();
        }

        @Override
        public Curve.State add(Curve.Event event, Curve.State state) {
            state.update(event);
            return state;
        }

        @Override
        public Curve.State getResult(Curve.State state) {
            return state;
        }

        @Override
        public Curve.State merge(Curve.State one, Curve.State other) {
            return one.merge(other);
        }
    }

    private static class Closing extends ProcessWindowFunction<Curve.State, Void, Long, TimeWindow> {
        @Override
        public void process(Long key, Context context, Iterable<Curve.State> window, Collector<Void> out) {
            window.forEach(Curve::close);
        }

        @Override
        public void close() {
            Curve.end();
        }
    }
}
