// Flink's DataStream: three sketches of JSON posts by the minute, two tasks. BOOTSTRAP TOPIC WARM ALL WAY
//
// By WAY "window" as its manual has it: keyed by a share of the users, in tumbling windows, aggregated in state on the
// heap; so messages are shuffled. By WAY "chained", an operator written for this: it runs in the source's task and
// keeps the sketches of open windows itself. No checkpoints, as is Flink's default.

import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.formats.json.JsonDeserializationSchema;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.util.Collector;

public class FlinkSketches {
    private static final int SHARES = 16; // enough for both tasks to get about half
    private static ThreeSketches.Answers answers;

    public static void main(String[] arguments) throws Exception {
        long warm = Long.parseLong(arguments[2]), all = Long.parseLong(arguments[3]);
        answers = new ThreeSketches.Answers(new ThreeSketches.Marks(warm, all));
        Configuration settings = new Configuration();
        settings.set(PipelineOptions.OBJECT_REUSE, true);
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(2, settings);
        KafkaSource<ThreeSketches.Post> source = KafkaSource.<ThreeSketches.Post>builder()
            .setBootstrapServers(arguments[0])
            .setTopics(arguments[1])
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setBounded(OffsetsInitializer.latest())
            .setValueOnlyDeserializer(new JsonDeserializationSchema<>(Types.POJO(ThreeSketches.Post.class)))
            .setProperty("max.poll.records", "10000")
            .setProperty("max.partition.fetch.bytes", String.valueOf(4 << 20))
            .setProperty("receive.buffer.bytes", String.valueOf(1 << 20))
            .build();
        WatermarkStrategy<ThreeSketches.Post> times = WatermarkStrategy
            .<ThreeSketches.Post>forMonotonousTimestamps()
            .withTimestampAssigner((post, before) -> post.ts);
        DataStream<ThreeSketches.Post> posts = environment.fromSource(source, times, "posts");
        DataStream<Void> closed = arguments[4].equals("chained")
            ? posts.transform("sketches", Types.VOID, new Sketching())
            : posts.keyBy(post -> post.user.hashCode() % SHARES)
                .window(TumblingEventTimeWindows.of(Duration.ofMinutes(1)))
                .aggregate(new Aggregation(), new Closing());
        closed.sinkTo(new DiscardingSink<>());
        environment.execute();
        System.out.println("[" + answers.marks.json() + ", " + answers.json() + "]");
        System.exit(0);
    }

    private static class Sketching extends AbstractStreamOperator<Void>
            implements OneInputStreamOperator<ThreeSketches.Post, Void> {
        private transient ThreeSketches.Windows windows;

        @Override
        public void open() {
            windows = new ThreeSketches.Windows(answers);
        }

        @Override
        public void processElement(StreamRecord<ThreeSketches.Post> message) {
            windows.update(message.getValue());
        }

        @Override
        public void processWatermark(Watermark mark) {
            windows.close(mark.getTimestamp() == Long.MAX_VALUE ? Long.MAX_VALUE : mark.getTimestamp() + 1);
            if (mark.getTimestamp() == Long.MAX_VALUE) {
                windows.count();
            }
        }
    }

    private static class Aggregation implements AggregateFunction<ThreeSketches.Post, ThreeSketches, ThreeSketches> {
        @Override
        public ThreeSketches createAccumulator() {
            return new ThreeSketches();
        }

        @Override
        public ThreeSketches add(ThreeSketches.Post post, ThreeSketches sketches) {
            sketches.update(post);
            if (sketches.prices.getN() % 1000 == 0) {
                answers.marks.add(1000);
            }
            return sketches;
        }

        @Override
        public ThreeSketches getResult(ThreeSketches sketches) {
            return sketches;
        }

        @Override
        public ThreeSketches merge(ThreeSketches one, ThreeSketches other) {
            throw new UnsupportedOperationException("windows that merge are not among these");
        }
    }

    private static class Closing extends ProcessWindowFunction<ThreeSketches, Void, Integer, TimeWindow> {
        @Override
        public void process(Integer share, Context context, Iterable<ThreeSketches> window, Collector<Void> out) {
            for (ThreeSketches sketches : window) {
                answers.marks.add(sketches.prices.getN() % 1000);
                answers.merge(context.window().getStart(), sketches);
            }
        }
    }
}
