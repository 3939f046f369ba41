//! The checks that hold for every cloud.

use testing_kit::checks::ownership;

use crate::under_test::Cloudscale;

macro_rules! checks {
    ($($module:ident: $($check:ident),+;)+) => {
        $($(
            #[tokio::test(start_paused = true)]
            async fn $check() {
                $module::$check::<Cloudscale>().await;
            }
        )+)+
    };
}

checks! {
    ownership:
        a_given_name_is_no_proof,
        a_given_name_is_no_proof_after_a_crash,
        a_copied_id_is_no_proof,
        a_restored_service_waits_for_a_word,
        a_service_of_another_class_is_invisible,
        what_is_proven_goes_beside_another_class,
        a_lost_creation_is_found_after_its_name_was_edited;
}
