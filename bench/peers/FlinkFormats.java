// How Flink reads the events of `bench curves` in each format: Jackson, Avro's generic records, Protobuf's parser, a split.

import com.google.protobuf.CodedInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.flink.api.common.serialization.AbstractDeserializationSchema;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.formats.json.JsonDeserializationSchema;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.DeserializationFeature;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;

class FlinkFormats {
    private static final String EVENT = "{\"type\": \"record\", \"name\": \"Event\", \"fields\": ["
        + "{\"name\": \"k\", \"type\": \"long\"}, {\"name\": \"u\", \"type\": \"string\"}, "
        + "{\"name\": \"v\", \"type\": \"double\"}, {\"name\": \"ts\", \"type\": \"long\"}, "
        + "{\"name\": \"pad\", \"type\": \"string\"}]}";

    static DeserializationSchema<Curve.Event> of(String format) {
        switch (format) {
            case "avro":
                return new Avro();
            case "protobuf":
                return new Protobuf();
            case "csv":
                return new Csv();
            default:
                return new JsonDeserializationSchema<>(Types.POJO(Curve.Event.class), FlinkFormats::mapper);
        }
    }

    private static ObjectMapper mapper() {
        return new ObjectMapper().configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
    }

    /** As flink-avro's schema for generic records does: the decoder and the record are used again. */
    private static class Avro extends AbstractDeserializationSchema<Curve.Event> {
        private transient GenericDatumReader<GenericRecord> reader;
        private transient BinaryDecoder decoder;
        private transient GenericRecord record;

        Avro() {
            super(Curve.Event.class);
        }

        @Override
        public void open(InitializationContext context) {
            reader = new GenericDatumReader<>(new Schema.Parser().parse(EVENT));
        }

        @Override
        public Curve.Event deserialize(byte[] message) throws IOException {
            decoder = DecoderFactory.get().binaryDecoder(message, decoder);
            record = reader.read(record, decoder);
            Curve.Event event = new Curve.Event();
            event.k = (Long) record.get(0);
            event.u = record.get(1).toString();
            event.v = (Double) record.get(2);
            event.ts = (Long) record.get(3);
            return event;
        }
    }

    /** As the parser of a generated class does. */
    private static class Protobuf extends AbstractDeserializationSchema<Curve.Event> {
        Protobuf() {
            super(Curve.Event.class);
        }

        @Override
        public Curve.Event deserialize(byte[] message) throws IOException {
            CodedInputStream in = CodedInputStream.newInstance(message);
            Curve.Event event = new Curve.Event();
            for (int tag = in.readTag(); tag != 0; tag = in.readTag()) {
                switch (tag >>> 3) {
                    case 1:
                        event.k = in.readInt64();
                        break;
                    case 2:
                        event.u = in.readStringRequireUtf8();
                        break;
                    case 3:
                        event.v = in.readDouble();
                        break;
                    case 4:
                        event.ts = in.readInt64();
                        break;
                    case 5:
                        in.readStringRequireUtf8();
                        break;
                    default:
                        in.skipField(tag);
                }
            }
            return event;
        }
    }

    private static class Csv extends AbstractDeserializationSchema<Curve.Event> {
        Csv() {
            super(Curve.Event.class);
        }

        @Override
        public Curve.Event deserialize(byte[] message) {
            String[] fields = new String(message, StandardCharsets.UTF_8).split(",");
            Curve.Event event = new Curve.Event();
            event.k = Long.parseLong(fields[0]);
            event.u = fields[1];
            event.v = Double.parseDouble(fields[2]);
            event.ts = Long.parseLong(fields[3]);
            return event;
        }
    }
}
