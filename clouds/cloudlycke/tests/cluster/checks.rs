//! The checks that hold for every cloud.
//!
//! A load balancer goes by the name of its Service, so there is no other one that an id could lead to: what a copied or
//! restored id would do elsewhere is shown in `balancers`.

use crate::under_test::Lycke;

testing_kit::checks! { Lycke;
    answers:
        instances_without_addresses_change_nothing,
        balancers_without_addresses_change_nothing,
        an_unreadable_part_stops_nobody_else,
        a_denial_to_another_credential_deletes_nothing,
        a_deletion_sent_to_another_account_deletes_nothing;
    ownership:
        a_service_of_another_class_is_invisible,
        what_is_proven_goes_beside_another_class;
    refusals:
        a_new_service_that_is_refused_is_not_touched;
}
