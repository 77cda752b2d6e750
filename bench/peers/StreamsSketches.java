// Kafka Streams: three sketches of JSON posts by the minute, two threads. BOOTSTRAP TOPIC WARM ALL
//
// A processor keeps the sketches of open windows as objects. (An `aggregate` of the DSL would read and write their
// bytes for each message, in memory, too.) Nothing is stored: neither a changelog nor a repartition topic is paid for.

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

public class StreamsSketches {
    public static void main(String[] arguments) throws Exception {
        long warm = Long.parseLong(arguments[2]), all = Long.parseLong(arguments[3]);
        ThreeSketches.Answers answers = new ThreeSketches.Answers(new ThreeSketches.Marks(warm, all));
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "sketches-" + ProcessHandle.current().pid());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("sketches").toString());
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.BUFFERED_RECORDS_PER_PARTITION_CONFIG, 20_000);
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        settings.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 10_000);
        settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, 4 << 20);
        settings.put(ConsumerConfig.RECEIVE_BUFFER_CONFIG, 1 << 20);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(
                arguments[1],
                Consumed.with(Serdes.ByteArray(), posts())
                    .withTimestampExtractor((message, before) -> ((ThreeSketches.Post) message.value()).ts))
            .process(() -> new Sketching(answers));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        answers.marks.done.await();
        streams.close(Duration.ofMinutes(1)); // its processors close their last windows
        System.out.println("[" + answers.marks.json() + ", " + answers.json() + "]");
    }

    private static Serde<ThreeSketches.Post> posts() {
        ObjectReader reader = new ObjectMapper().readerFor(ThreeSketches.Post.class);
        Deserializer<ThreeSketches.Post> deserializer = (topic, bytes) -> {
            try {
                return reader.readValue(bytes);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        };
        return Serdes.serdeFrom((topic, post) -> null, deserializer);
    }

    private static class Sketching implements Processor<byte[], ThreeSketches.Post, Void, Void> {
        private final ThreeSketches.Windows windows;

        Sketching(ThreeSketches.Answers answers) {
            windows = new ThreeSketches.Windows(answers);
        }

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            context.schedule(Duration.ofSeconds(1), PunctuationType.STREAM_TIME, windows::close);
            context.schedule(Duration.ofMillis(100), PunctuationType.WALL_CLOCK_TIME, time -> windows.count());
        }

        @Override
        public void process(Record<byte[], ThreeSketches.Post> message) {
            windows.update(message.value());
        }

        @Override
        public void close() {
            windows.close(Long.MAX_VALUE);
        }
    }
}
