// Flink for `bench latency`: three rules by sensor, checkpoints of 100 ms, alerts exactly once. BOOTSTRAP TOPIC ALERTS

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.formats.json.JsonDeserializationSchema;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.DeserializationFeature;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

public class FlinkAlerts {
    private static final long SILENCE_MS = 3_600_000;

    /** A reading, as Jackson makes it. */
    public static class Reading {
        public String sensor;
        public long at;
        public double v;
    }

    public static void main(String[] arguments) throws Exception {
        Configuration settings = new Configuration();
        settings.set(PipelineOptions.OBJECT_REUSE, true);
        settings.set(RestartStrategyOptions.RESTART_STRATEGY, "none"); // a fault is to be seen
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(2, settings);
        environment.enableCheckpointing(100);
        KafkaSource<Reading> source = KafkaSource.<Reading>builder()
            .setBootstrapServers(arguments[0])
            .setTopics(arguments[1])
            .setStartingOffsets(OffsetsInitializer.latest())
            .setValueOnlyDeserializer(new JsonDeserializationSchema<>(
                Types.POJO(Reading.class),
                () -> new org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper()
                    .configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false)))
            .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
            .setBootstrapServers(arguments[0])
            .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix("alerts-" + ProcessHandle.current().pid())
            .setProperty("transaction.timeout.ms", "60000")
            .setRecordSerializer(KafkaRecordSerializationSchema.builder()
                .setTopic(arguments[2])
                .setValueSerializationSchema(new SimpleStringSchema())
                .build())
            .build();
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "readings")
            .keyBy(reading -> reading.sensor)
            .process(new Rules())
            .sinkTo(sink);
        environment.execute();
    }

    private static class Rules extends KeyedProcessFunction<String, Reading, String> {
        private transient ValueState<Double> last;
        private transient ValueState<Long> due;

        @Override
        public void open(OpenContext context) {
            last = getRuntimeContext().getState(new ValueStateDescriptor<>("last", Types.DOUBLE));
            due = getRuntimeContext().getState(new ValueStateDescriptor<>("due", Types.LONG));
        }

        @Override
        public void processElement(Reading reading, Context context, Collector<String> out) throws Exception {
            if (reading.v > 95) {
                out.collect(alert("hot", reading.sensor, reading.at));
            }
            Double before = last.value();
            if (before != null && Math.abs(reading.v - before) > 1_000) {
                out.collect(alert("jump", reading.sensor, reading.at));
            }
            last.update(reading.v);
            long now = context.timerService().currentProcessingTime() / 1_000 * 1_000;
            Long timer = due.value();
            if (timer == null || timer < now + SILENCE_MS) {
                if (timer != null) {
                    context.timerService().deleteProcessingTimeTimer(timer);
                }
                context.timerService().registerProcessingTimeTimer(now + SILENCE_MS);
                due.update(now + SILENCE_MS);
            }
        }

        @Override
        public void onTimer(long time, OnTimerContext context, Collector<String> out) {
            out.collect(alert("dead", context.getCurrentKey(), 1_000 * time));
        }
    }

    private static String alert(String rule, String sensor, long at) {
        return "{\"rule\":\"" + rule + "\",\"key\":\"" + sensor + "\",\"at\":" + at + "}";
    }
}
