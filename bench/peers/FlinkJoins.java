// The joins of FlinkCurve: with a table that is read from a topic, and of two streams within an interval.

import java.time.Duration;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.formats.json.JsonDeserializationSchema;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.streaming.api.functions.co.ProcessJoinFunction;
import org.apache.flink.util.Collector;

class FlinkJoins {
    /** A row of the table, as Jackson makes it. */
    public static class Row {
        public long k, g;
    }

    /** Events with their row's g in place of k. */
    static DataStream<Curve.Event> withTable(DataStream<Curve.Event> events, StreamExecutionEnvironment environment) {
        KafkaSource<Row> source = KafkaSource.<Row>builder()
            .setBootstrapServers(Curve.text("bootstrap"))
            .setTopics(Curve.text("topic") + "-table")
            .setStartingOffsets(OffsetsInitializer.earliest())
            .setBounded(OffsetsInitializer.latest())
            .setValueOnlyDeserializer(new JsonDeserializationSchema<>(Types.POJO(Row.class)))
            .setProperty("max.poll.records", "10000")
            .setProperty("max.partition.fetch.bytes", String.valueOf(4 << 20))
            .build();
        DataStream<Row> table = environment.fromSource(source, WatermarkStrategy.noWatermarks(), "table");
        return events.keyBy(event -> event.k)
            .connect(table.keyBy(row -> row.k))
            .process(new Lookup())
            .returns(Types.POJO(Curve.Event.class));
    }

    static DataStream<Curve.Event> withEvents(DataStream<Curve.Event> events, DataStream<Curve.Event> others) {
        Duration within = Duration.ofMillis(Curve.number("within"));
        return events.keyBy(event -> event.k)
            .intervalJoin(others.keyBy(event -> event.k))
            .between(within.negated(), within)
            .process(new Pair())
            .returns(Types.POJO(Curve.Event.class));
    }

    private static Curve.Event copy(Curve.Event event, long k) {
        Curve.Event copy = new Curve.Event();
        copy.k = k;
        copy.u = event.u;
        copy.v = event.v;
        copy.ts = event.ts;
        return copy;
    }

    private static class Pair extends ProcessJoinFunction<Curve.Event, Curve.Event, Curve.Event> {
        @Override
        public void processElement(Curve.Event one, Curve.Event other, Context context, Collector<Curve.Event> out) {
            out.collect(one);
        }
    }

    /** Events that come before their key's row wait until the table is read, which is when time passes. */
    private static class Lookup extends KeyedCoProcessFunction<Long, Curve.Event, Row, Curve.Event> {
        private transient ValueState<Long> row;
        private transient ListState<Curve.Event> waiting;

        @Override
        public void open(OpenContext context) {
            row = getRuntimeContext().getState(new ValueStateDescriptor<>("row", Types.LONG));
            waiting = getRuntimeContext().getListState(
                new ListStateDescriptor<>("waiting", Types.POJO(Curve.Event.class)));
        }

        @Override
        public void processElement1(Curve.Event event, Context context, Collector<Curve.Event> out) throws Exception {
            Long g = row.value();
            if (g != null) {
                out.collect(copy(event, g));
                return;
            }
            waiting.add(copy(event, event.k));
            context.timerService().registerEventTimeTimer(event.ts);
        }

        @Override
        public void processElement2(Row own, Context context, Collector<Curve.Event> out) throws Exception {
            row.update(own.g);
        }

        /** A timer gives the waiting events of its time that time. */
        @Override
        public void onTimer(long time, OnTimerContext context, Collector<Curve.Event> out) throws Exception {
            Long g = row.value();
            boolean others = false;
            for (Curve.Event event : waiting.get()) {
                if (event.ts == time && g != null) {
                    out.collect(copy(event, g));
                }
                others |= event.ts > time;
            }
            if (!others) {
                waiting.clear();
            }
        }
    }
}
