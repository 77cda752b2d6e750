// How fast Kafka Streams closes one-minute windows: a tumbling count, suppressed until the window closes.
//
// Its own defaults: one thread, at least once, RocksDB stores with their changelogs; with "memory" as the last
// argument, stores in memory. Event times stand in the messages, whose first field they are. Prints how many
// windows close in a second of wall time, from the `warm`th on until `all` have.

import java.nio.file.Files;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;

public class StreamsWindows {
    private static final String FIRST = "{\"at\":";

    public static void main(String[] arguments) throws Exception {
        long warm = Long.parseLong(arguments[2]), all = Long.parseLong(arguments[3]);
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "windows-" + ProcessHandle.current().pid());
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("windows").toString());
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        if (arguments[4].equals("memory")) {
            settings.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
        }
        StreamsBuilder builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(settings)));
        CountDownLatch done = new CountDownLatch(1);
        long[] closed = {0}, times = {0, 0};
        builder.stream(
                arguments[1],
                Consumed.with(Serdes.String(), Serdes.String())
                    .withTimestampExtractor((message, before) -> 1000 * secondsOf((String) message.value())))
            .groupByKey()
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1)))
            .count()
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))
            .toStream()
            .foreach((window, count) -> {
                closed[0]++;
                if (closed[0] == warm) {
                    times[0] = System.nanoTime();
                }
                if (closed[0] == all) {
                    times[1] = System.nanoTime();
                    done.countDown();
                }
            });
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        done.await();
        System.out.println(1e9 * (all - warm) / (times[1] - times[0]));
        System.out.flush();
        Runtime.getRuntime().halt(0); // closing would wait for what is in its caches, for hours
    }

    private static long secondsOf(String value) {
        return Long.parseLong(value, FIRST.length(), value.indexOf(','), 10);
    }
}
