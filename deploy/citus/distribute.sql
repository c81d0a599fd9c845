-- Distributes the tables with a row or more a person by the person: for psql, once, on the coordinator, after
-- `dither migrate` and after the workers were added to the database. All other tables stay on the coordinator,
-- which is the only address that Dither connects to. Rows that are there already are moved.
\set ON_ERROR_STOP on
BEGIN;
SET LOCAL citus.shard_count = 4;
ALTER TABLE contribution DROP CONSTRAINT fk_contribution_subject_id_subject;
ALTER TABLE enrolment DROP CONSTRAINT fk_enrolment_subject_id_subject;
SELECT create_distributed_table('subject', 'id', colocate_with => 'none');
SELECT create_distributed_table('contribution', 'subject_id', colocate_with => 'subject');
SELECT create_distributed_table('enrolment', 'subject_id', colocate_with => 'subject');
SELECT create_distributed_table('answer', 'subject_id', colocate_with => 'subject');
ALTER TABLE contribution ADD CONSTRAINT fk_contribution_subject_id_subject
  FOREIGN KEY (subject_id) REFERENCES subject (id);
ALTER TABLE enrolment ADD CONSTRAINT fk_enrolment_subject_id_subject
  FOREIGN KEY (subject_id) REFERENCES subject (id);
COMMIT;
