DROP TABLE wire_case;
DROP TABLE wire_arrival;
DROP TABLE wire_sequence;
DROP TABLE wire_message;
DROP TABLE wire;
