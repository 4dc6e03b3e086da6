DROP TABLE document_key;
