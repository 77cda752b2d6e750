// Kafka Streams for `bench latency`: three rules by sensor, exactly once, commits of 100 ms. BOOTSTRAP TOPIC ALERTS

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

public class StreamsAlerts {
    private static final long SILENCE_US = 3_600_000_000L;

    /** A reading, as Jackson makes it. */
    @JsonIgnoreProperties(ignoreUnknown = true)
    public static class Reading {
        public String sensor;
        public long at;
        public double v;
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "alerts-" + ProcessHandle.current().pid());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("alerts").toString());
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "latest");
        ObjectReader reader = new ObjectMapper().readerFor(Reading.class);
        Deserializer<Reading> readings = (topic, bytes) -> {
            try {
                return reader.readValue(bytes);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        };
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(
                arguments[1],
                Consumed.with(Serdes.ByteArray(), Serdes.serdeFrom((topic, reading) -> null, readings)))
            .process(Rules::new)
            .to(arguments[2], Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        Thread.currentThread().join();
    }

    private static class Rules implements Processor<byte[], Reading, String, String> {
        private final Map<String, double[]> last = new HashMap<>(); // of each sensor, its value and its time
        private ProcessorContext<String, String> context;

        @Override
        public void init(ProcessorContext<String, String> given) {
            context = given;
            context.schedule(Duration.ofSeconds(10), PunctuationType.WALL_CLOCK_TIME, time -> last.forEach((sensor, own) -> {
                if (own[1] < 1_000.0 * time - SILENCE_US) {
                    forward("dead", sensor, 1_000 * time, time);
                }
            }));
        }

        @Override
        public void process(Record<byte[], Reading> message) {
            Reading reading = message.value();
            double[] before = last.get(reading.sensor);
            if (reading.v > 95) {
                forward("hot", reading.sensor, reading.at, message.timestamp());
            }
            if (before != null && Math.abs(reading.v - before[0]) > 1_000) {
                forward("jump", reading.sensor, reading.at, message.timestamp());
            }
            if (before == null) {
                last.put(reading.sensor, before = new double[2]);
            }
            before[0] = reading.v;
            before[1] = reading.at;
        }

        private void forward(String rule, String sensor, long at, long time) {
            String alert = "{\"rule\":\"" + rule + "\",\"key\":\"" + sensor + "\",\"at\":" + at + "}";
            context.forward(new Record<>(sensor, alert, time));
        }
    }
}
