-- A prompt of a transcript is compared with the entries of its session that have the same words.
drop index typed_prompt_by_session_key;
create index typed_prompt_by_session_key on typed_prompt (instance, session_key, words);
