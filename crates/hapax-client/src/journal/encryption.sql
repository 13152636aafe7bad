-- The key that seals the rows of this journal, wrapped by a master key that is kept elsewhere.
CREATE TABLE hapax_journal_key (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    master  TEXT NOT NULL,
    wrapped BLOB NOT NULL
) STRICT;

-- Whoever opened the journal before it was encrypted writes nothing more in the clear.
CREATE TRIGGER hapax_calls_request_is_sealed BEFORE INSERT ON hapax_calls WHEN NEW.format = 1
BEGIN
    SELECT RAISE(ABORT, 'the journal is encrypted by now: open it again with its master key');
END;

CREATE TRIGGER hapax_calls_end_is_sealed BEFORE UPDATE ON hapax_calls
WHEN NEW.reason IS NOT NULL OR length(NEW.answer_head) > 0
BEGIN
    SELECT RAISE(ABORT, 'the journal is encrypted by now: open it again with its master key');
END;
