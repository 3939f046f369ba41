//! The checks that hold for every cloud.

use crate::under_test::Cloudscale;

testing_kit::checks! { Cloudscale;
    answers:
        instances_without_addresses_change_nothing,
        balancers_without_addresses_change_nothing,
        an_unreadable_part_stops_nobody_else,
        a_denial_to_another_credential_deletes_nothing,
        a_deletion_sent_to_another_account_deletes_nothing;
    ownership:
        a_given_name_is_no_proof,
        a_given_name_is_no_proof_after_a_crash,
        a_copied_id_is_no_proof,
        a_restored_service_waits_for_a_word,
        a_service_of_another_class_is_invisible,
        what_is_proven_goes_beside_another_class,
        a_lost_creation_is_found_after_its_name_was_edited;
    refusals:
        a_new_service_that_is_refused_is_not_touched;
}
