//! What this role may do, and what others may.

use tokio_postgres::{Client, Error};

use super::{Diagnosis, judged};

/// Each right in turn: one that is missing is enough to refuse.
const LOOK: &str = "
SELECT current_user::text,
       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
       coalesce(has_schema_privilege(to_regnamespace('hapax')::oid, 'USAGE'), false),
       coalesce((SELECT bool_and(has_table_privilege(c.oid, right_of.name))
                 FROM pg_class AS c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS right_of (name)
                 WHERE c.relnamespace = to_regnamespace('hapax') AND c.relkind IN ('r', 'p')), false),
       coalesce((SELECT bool_and(has_function_privilege(p.oid, 'EXECUTE'))
                 FROM pg_proc AS p WHERE p.pronamespace = to_regnamespace('hapax')
                 AND p.proname IN ('begin', 'finish', 'fail', 'record', 'emit', 'first_delivery')), false),
       ARRAY(SELECT DISTINCT c.relname::text FROM pg_class AS c, aclexplode(c.relacl) AS granted
             WHERE c.relnamespace = to_regnamespace('hapax') AND granted.grantee = 0 ORDER BY 1)
";

struct RightsFacts {
    role: String,
    is_superuser: bool,
    rights: SchemaRights,
    /// Tables that every role has some right to.
    open_tables: Vec<String>,
}

/// What a role may do in schema `hapax`.
#[derive(Debug, Clone, Copy)]
struct SchemaRights {
    may_enter: bool,
    may_use_tables: bool,
    may_call_functions: bool,
}

const CHECKS: &[fn(&RightsFacts) -> Diagnosis] = &[role, open_tables];

pub(super) async fn examine(client: &Client) -> Vec<Diagnosis> {
    judged("rights", gather(client).await, CHECKS)
}

async fn gather(client: &Client) -> Result<RightsFacts, Error> {
    let row = client.query_one(LOOK, &[]).await?;
    Ok(RightsFacts {
        role: row.try_get(0)?,
        is_superuser: row.try_get(1)?,
        rights: SchemaRights {
            may_enter: row.try_get(2)?,
            may_use_tables: row.try_get(3)?,
            may_call_functions: row.try_get(4)?,
        },
        open_tables: row.try_get(5)?,
    })
}

fn role(facts: &RightsFacts) -> Diagnosis {
    let RightsFacts { role, .. } = facts;
    let found = |what: &str| Diagnosis::new("role", format!("{role} {what}"));
    if facts.is_superuser {
        return found("is a superuser").note(
            "whoever gets hold of its password has the whole server; Hapax needs no more than its schema",
            "CREATE ROLE hapax LOGIN; GRANT CREATE ON DATABASE … TO hapax; and migrate as that role",
        );
    }
    let SchemaRights { may_enter, may_use_tables, may_call_functions } = facts.rights;
    if may_enter && may_use_tables {
        return found("may do what a gateway needs");
    }
    if may_enter && may_call_functions {
        return found("may call the functions and touch no table").note(
            "right for a service that calls the SQL functions; a gateway does not start as this role",
            "run gateways, hapax keys and hapax relay as the owner of schema hapax",
        );
    }
    found("may use neither the tables nor the functions").danger(
        "nothing can be kept as this role: requests with keys are refused",
        format!("connect as the owner of schema hapax; for a service: hapax migrate --role {role}"),
    )
}

fn open_tables(facts: &RightsFacts) -> Diagnosis {
    const NAME: &str = "grants";
    if facts.open_tables.is_empty() {
        return Diagnosis::new(NAME, "no table is open to every role");
    }
    let tables = facts.open_tables.join(", ");
    Diagnosis::new(NAME, format!("open to every role: {tables}")).danger(
        "any role of the database can read or change keys of every tenant",
        "REVOKE ALL ON ALL TABLES IN SCHEMA hapax FROM PUBLIC;",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    #[test]
    fn each_kind_of_role_is_told_what_it_is_for() {
        let facts = |may_enter, may_use_tables, may_call_functions| RightsFacts {
            role: "shop".to_owned(),
            is_superuser: false,
            rights: SchemaRights { may_enter, may_use_tables, may_call_functions },
            open_tables: Vec::new(),
        };
        assert_eq!(role(&facts(true, true, true)).severity(), None);
        assert_eq!(role(&facts(true, false, true)).severity(), Some(Severity::Note));
        assert_eq!(role(&facts(true, false, false)).severity(), Some(Severity::Danger));
        assert_eq!(role(&facts(false, true, true)).severity(), Some(Severity::Danger));
        let open_tables_of = vec!["operations".to_owned()];
        let open = RightsFacts { open_tables: open_tables_of, ..facts(true, true, true) };
        assert_eq!(open_tables(&open).severity(), Some(Severity::Danger));
    }
}
