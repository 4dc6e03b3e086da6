-- Whether the file of a document is encrypted in the store. `billfold migrate up` encrypts what is not.
ALTER TABLE document ADD COLUMN file_sealed boolean NOT NULL DEFAULT false;
CREATE INDEX document_unsealed ON document (document_id) WHERE file_key IS NOT NULL AND NOT file_sealed;
