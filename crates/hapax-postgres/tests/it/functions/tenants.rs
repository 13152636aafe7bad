//! Roles that are bound to tenants: they use those, by every door, and no others.

use super::{Service, rights::Role, shop};
use crate::backend::Postgres;

/// Every call that takes a tenant, with this one.
fn calls(tenant: &str) -> [String; 4] {
    [
        format!("SELECT hapax.begin('{tenant}', 's', 'k', wait => '0')"),
        format!("SELECT hapax.record('{tenant}', 's', 'k')"),
        format!("SELECT hapax.first_delivery('c', 'm', tenant => '{tenant}')"),
        format!("SELECT hapax.status('{tenant}', 's', 'k')"),
    ]
}

async fn may(service: &Service, tenant: &str) {
    for call in calls(tenant) {
        service.run(&format!("BEGIN; {call}; ROLLBACK")).await;
    }
}

async fn may_not(service: &Service, tenant: &str) {
    for call in calls(tenant) {
        let refused = service.refused(&call).await;
        assert_eq!(refused.code, "42501", "{call}: {refused:?}");
        assert!(refused.hint.unwrap().contains("hapax.bind_tenants"), "{call}");
    }
}

async fn bind(database: &Postgres, role: &Role, tenants: &str) {
    let text = format!("SELECT hapax.bind_tenants('{}', '{tenants}')", role.name);
    database.client().await.batch_execute(&text).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_bound_to_tenants_uses_those_and_no_others() {
    let (bound, free) = (Role::create().await, Role::create().await);
    let (database, _store) = shop().await;
    let (service, other) = (bound.enter(&database).await, free.enter_beside(&database).await);
    may(&service, "globex").await;
    bind(&database, &bound, "{acme,messages}").await;
    may(&service, "acme").await;
    may(&service, "messages").await;
    may_not(&service, "globex").await;
    // What others do under a tenant is not told, not blocked and not replayed.
    may(&other, "globex").await;
    may(&Service::new(&database).await, "globex").await;
    service.run("BEGIN").await;
    assert_eq!(service.pay("key").await, Ok(true));
    service.run("SELECT hapax.emit('t', 'k', 'p'); COMMIT").await;

    let unbind = |tenants: &str| format!("SELECT hapax.unbind_tenants('{}'{tenants})", bound.name);
    let owner = Service::new(&database).await;
    owner.run(&unbind(", '{messages}'")).await;
    may_not(&service, "messages").await;
    may(&service, "acme").await;
    assert_eq!(owner.refused(&unbind(", '{acme}'")).await.code, "HX001");
    may_not(&service, "globex").await;
    owner.run(&unbind("")).await;
    may(&service, "globex").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_belongs_to_a_bound_role_or_takes_it_on_is_bound_too() {
    let (team, member, pooler) = (Role::create().await, Role::create().await, Role::create().await);
    let (database, _store) = shop().await;
    team.enter(&database).await;
    let owner = Service::new(&database).await;
    let (team_name, member_name, pooler_name) = (&team.name, &member.name, &pooler.name);
    owner
        .run(&format!("GRANT {team_name} TO {member_name}; GRANT {member_name} TO {pooler_name}"))
        .await;
    bind(&database, &team, "{acme}").await;
    let service = member.enter_again(&database).await;
    may(&service, "acme").await;
    may_not(&service, "globex").await;
    // A role of one's own does not lift what one belongs to, and a role taken on binds its taker.
    bind(&database, &member, "{globex}").await;
    let pooled = pooler.enter_again(&database).await;
    may(&pooled, "globex").await;
    pooled.run(&format!("SET ROLE {team_name}")).await;
    may(&pooled, "acme").await;
    may_not(&pooled, "globex").await;
    owner.run(&format!("SET ROLE {team_name}")).await;
    may_not(&owner, "globex").await;
    owner.run(&format!("RESET ROLE; REVOKE {team_name} FROM {member_name}; REVOKE {member_name} FROM {pooler_name}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_binds_and_only_what_can_be_meant() {
    let role = Role::create().await;
    let (database, _store) = shop().await;
    let service = role.enter(&database).await;
    for text in [
        format!("SELECT hapax.bind_tenants('{}', '{{acme}}')", role.name),
        format!("SELECT hapax.unbind_tenants('{}')", role.name),
        "SELECT hapax.check_tenant('acme')".to_owned(),
        "SELECT * FROM hapax.role_tenants".to_owned(),
        "INSERT INTO hapax.role_tenants SELECT 'postgres', 'acme'".to_owned(),
        "SELECT hapax.purge_inbox()".to_owned(),
    ] {
        assert_eq!(service.refused(&text).await.code, "42501", "{text}");
    }
    let owner = Service::new(&database).await;
    for tenants in ["NULL", "'{}'", "'{\"\"}'", "'{NULL}'"] {
        let text = format!("SELECT hapax.bind_tenants('{}', {tenants})", role.name);
        assert_eq!(owner.refused(&text).await.code, "HX001", "{text}");
    }
}
