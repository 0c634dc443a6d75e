-- The same index as before, and the beginnings of words beside it: without them, a search for a beginning reads all
-- that is known of every word that begins so.
DROP TRIGGER passage_added;
DROP TRIGGER passage_removed;
DROP TABLE passage_words;

CREATE VIRTUAL TABLE passage_words USING fts5 (
    title, text, content = 'passage', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
);

-- What is removed leaves nothing in the index either.
INSERT INTO passage_words (passage_words, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER passage_added AFTER INSERT ON passage BEGIN
    INSERT INTO passage_words (rowid, title, text) VALUES (new.id, new.title, new.text);
END;

CREATE TRIGGER passage_removed AFTER DELETE ON passage BEGIN
    INSERT INTO passage_words (passage_words, rowid, title, text) VALUES ('delete', old.id, old.title, old.text);
END;

INSERT INTO passage_words (passage_words) VALUES ('rebuild');
