-- What can be searched: one document per part with words, and one per title. Exactly one of the two columns is set.
-- Parts have no number of their own that lasts (VACUUM may give them others), so documents do.
CREATE TABLE search_documents (
    id INTEGER PRIMARY KEY,
    part_id TEXT UNIQUE REFERENCES chat_parts (id) ON DELETE CASCADE,
    session_id TEXT REFERENCES chat_sessions (id) ON DELETE CASCADE,
    CHECK ((part_id IS NULL) <> (session_id IS NULL))
);
CREATE UNIQUE INDEX search_documents_session_id ON search_documents (session_id) WHERE session_id IS NOT NULL;

-- With the text itself: what is taken out must be known word by word, and must not depend on how a later version
-- reads a part.
CREATE VIRTUAL TABLE search_text USING fts5 (body, tokenize = 'unicode61 remove_diacritics 2');

-- What is deleted leaves the index at once, and not when segments happen to be merged.
INSERT INTO search_text (search_text, rank) VALUES ('secure-delete', 1);

-- Documents whose words are still to be taken out of the index. Whatever deletes a part or a session, cascades and people
-- at a prompt included, leaves them here. Taking the words of one document out costs about as much as a commit, so a few
-- go with the commit that deleted them and many go in pieces.
CREATE TABLE search_removed (id INTEGER PRIMARY KEY);
CREATE TRIGGER search_documents_deleted AFTER DELETE ON search_documents BEGIN
    INSERT INTO search_removed (id) VALUES (old.id);
END;

-- Sessions whose parts are still to be read for the index, after the part with this rowid. Many parts at once (this
-- step, copies, imports) are indexed in pieces when nothing else is to do, and at the latest before a search.
CREATE TABLE search_backlog (
    session_id TEXT PRIMARY KEY NOT NULL REFERENCES chat_sessions (id) ON DELETE CASCADE,
    after_rowid INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO search_backlog (session_id) SELECT id FROM chat_sessions;
