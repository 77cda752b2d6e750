// Kafka Streams for `bench curves`: a processor that keeps the aggregates of open windows as objects, two threads.
//
// bootstrap= topic= messages= aggregates= window=tumbling|hopping length= step= (ms). Nothing is stored: neither a
// changelog nor a repartition topic is paid for. So it needs a key's messages in one partition, where they are.

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

public class StreamsCurve {
    public static void main(String[] arguments) throws Exception {
        Curve.begin(arguments);
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "curve-" + ProcessHandle.current().pid());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, Curve.text("bootstrap"));
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("curve").toString());
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.BUFFERED_RECORDS_PER_PARTITION_CONFIG, 20_000);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 10_000);
        settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, 4 << 20);
        settings.put(ConsumerConfig.RECEIVE_BUFFER_CONFIG, 1 << 20);
        ObjectReader reader = new ObjectMapper().readerFor(Curve.Event.class);
        Deserializer<Curve.Event> events = (topic, bytes) -> {
            try {
                return reader.readValue(bytes);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        };
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(
                Curve.text("topic"),
                Consumed.with(Serdes.ByteArray(), Serdes.serdeFrom((topic, event) -> null, events))
                    .withTimestampExtractor((message, before) -> ((Curve.Event) message.value()).ts))
            .process(Aggregating::new);
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        Curve.done.await();
        streams.close(Duration.ofMinutes(2)); // its processors close their last windows
        System.out.println(Curve.json());
        System.exit(0);
    }

    private static class Aggregating implements Processor<byte[], Curve.Event, Void, Void> {
        private final TreeMap<Long, Map<Long, Curve.State>> open = new TreeMap<>(); // by the window's start
        private final long length = Curve.number("length"), step = Curve.number("step");
        private int uncounted;

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            context.schedule(Duration.ofSeconds(1), PunctuationType.STREAM_TIME, this::closeUntil);
            context.schedule(Duration.ofMillis(100), PunctuationType.WALL_CLOCK_TIME, time -> count());
        }

        @Override
        public void process(Record<byte[], Curve.Event> message) {
            Curve.Event event = message.value();
            for (long start = event.ts - event.ts % step; start > event.ts - length; start -= step) {
                open.computeIfAbsent(start, none -> new HashMap<>())
                    .computeIfAbsent(event.k, none -> new Curve.State())
                    .update(event);
            }
            if (++uncounted == 1000) {
                count();
            }
        }

        @Override
        public void close() {
            closeUntil(Long.MAX_VALUE);
            Curve.end();
        }

        private void closeUntil(long time) {
            SortedMap<Long, Map<Long, Curve.State>> closed = open.headMap(time - length, true);
            closed.values().forEach(keys -> keys.values().forEach(Curve::close));
            closed.clear();
        }

        private void count() {
            Curve.read(uncounted);
            uncounted = 0;
        }
    }
}
