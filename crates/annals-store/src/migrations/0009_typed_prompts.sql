-- Entries of the lists in which clients note everything that was typed. `session` is the one that shows the entry: none
-- while a transcript has it. `checked` is 0 until that is decided.
create table typed_prompt (
  file bigint not null,
  place bigint not null,
  length bigint not null,
  instance bigint not null,
  session_key text,
  project text,
  at bigint not null,
  kind integer not null,
  words bigint not null,
  title text not null,
  session bigint,
  checked integer not null,
  primary key (file, place)
) without rowid;
create index typed_prompt_by_time on typed_prompt (instance, at);
create index typed_prompt_by_session_key on typed_prompt (instance, session_key);
create index typed_prompt_by_session on typed_prompt (session, file);
create index typed_prompt_unchecked on typed_prompt (file, place) where checked = 0;

-- What a person typed, of the messages in transcripts: its time and its words tell whether an entry is there. `at` is 0
-- where the transcript has no times.
create table spoken (
  session bigint not null,
  file bigint not null,
  place bigint not null,
  instance bigint not null,
  at bigint not null,
  words bigint not null,
  primary key (session, file, place)
) without rowid;
create index spoken_by_time on spoken (instance, at);
