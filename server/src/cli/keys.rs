//! `throughline keys`: of whichever tenant, as whoever can open the store is its operator.

use std::time::Duration;

use clap::Subcommand;
use serde::Serialize;
use throughline_core::access::{ApiKey, By, KeyUser, NewKey, Permission, Permissions, Rate};
use throughline_core::ids::{KeyId, TenantId, UserId, WorkspaceId};
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result};
use throughline_engine::config::Config;
use throughline_engine::terminal::{Output, table};

use super::open::{open, open_existing};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a key; it is shown only once
    Create(CreateArgs),
    /// List the keys of a tenant
    List(TenantArgs),
    /// Give a key a new secret; it is shown only once
    Rotate(RotateArgs),
    /// Revoke a key; every server then refuses it
    Revoke(RevokeArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct TenantArgs {
    /// The tenant [default: the setting `identity.tenant`]
    #[arg(long)]
    tenant: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct CreateArgs {
    #[command(flatten)]
    tenant: TenantArgs,
    /// The user that the key is bound to
    #[arg(long, conflicts_with = "any_user", required_unless_present = "any_user")]
    user: Option<String>,
    /// Let the key act for any user of the tenant; each call names the user in the header `Throughline-User`
    #[arg(long)]
    any_user: bool,
    /// The workspace that the key is bound to
    #[arg(long)]
    workspace: Option<String>,
    /// Permissions: read, write, chat, admin, separated by commas
    #[arg(long, default_value = "read,write")]
    permissions: String,
    /// A display name
    #[arg(long, default_value = "")]
    name: String,
    /// When the key expires, such as 2027-01-31
    #[arg(long, value_name = "TIME")]
    expires: Option<String>,
    /// Calls allowed per minute [default: the setting `http.requests_per_minute`]
    #[arg(long, value_name = "N")]
    requests_per_minute: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub(super) struct RotateArgs {
    /// The key's id, 16 hexadecimal digits
    id: String,
    #[command(flatten)]
    tenant: TenantArgs,
    /// Seconds for which the old secret stays valid
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    grace: u64,
}

#[derive(Debug, clap::Args)]
pub(super) struct RevokeArgs {
    /// The key's id, 16 hexadecimal digits
    id: String,
    #[command(flatten)]
    tenant: TenantArgs,
}

#[derive(Serialize)]
struct Key {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    tenant: String,
    user: Option<String>,
    workspace: Option<String>,
    permissions: Vec<&'static str>,
    name: String,
    expires_at: Option<String>,
    last_used_at: Option<String>,
    revoked_at: Option<String>,
}

impl Key {
    fn of(key: ApiKey, secret: Option<String>) -> Self {
        let text = |at: Option<Timestamp>| at.map(Timestamp::to_rfc3339);
        Self {
            id: key.id.to_string(),
            key: secret,
            tenant: key.tenant.to_string(),
            user: match key.user {
                KeyUser::Is(user) => Some(user.to_string()),
                KeyUser::Any => None,
            },
            workspace: key.workspace.map(|workspace| workspace.to_string()),
            permissions: key.permissions.iter().map(Permission::as_str).collect(),
            name: key.name,
            expires_at: text(key.expires_at),
            last_used_at: text(key.last_used_at),
            revoked_at: text(key.revoked_at),
        }
    }

    fn shown_once(&self) -> String {
        format!(
            "{}\nThis is key {} of {}; it is not shown again. Send it as `Authorization: Bearer …`.",
            self.key.as_deref().unwrap_or_default(),
            self.id,
            self.tenant
        )
    }
}

impl TenantArgs {
    fn tenant(&self, config: &Config) -> Result<TenantId> {
        TenantId::new(self.tenant.as_ref().unwrap_or(&config.identity.tenant))
    }
}

pub(super) async fn run(command: &Command, config: &Config, output: &Output) -> Result<()> {
    match command {
        Command::Create(args) => create(args, config, output).await,
        Command::List(args) => list(args, config, output).await,
        Command::Rotate(args) => {
            let engine = open_existing(config).await?.engine;
            let (id, tenant) = (args.id.parse::<KeyId>()?, args.tenant.tenant(config)?);
            let grace = Duration::from_secs(args.grace);
            let rotated = engine.access.rotate(By::OPERATOR, &tenant, id, grace).await?;
            let key = Key::of(rotated.record, Some(rotated.key));
            output.result(&key, || key.shown_once())
        }
        Command::Revoke(args) => {
            let engine = open_existing(config).await?.engine;
            let (id, tenant) = (args.id.parse::<KeyId>()?, args.tenant.tenant(config)?);
            let revoked = engine.access.revoke(By::OPERATOR, &tenant, id).await?;
            let key = Key::of(revoked, None);
            output.result(&key, || format!("key {} of {} is revoked", key.id, key.tenant))
        }
    }
}

async fn create(args: &CreateArgs, config: &Config, output: &Output) -> Result<()> {
    let tenant = args.tenant.tenant(config)?;
    let user = match &args.user {
        Some(user) => KeyUser::Is(UserId::new(user)?),
        None if args.any_user => KeyUser::Any,
        None => return Err(Error::invalid("name the user with --user, or pass --any-user")),
    };
    let new = NewKey {
        user,
        workspace: args.workspace.as_ref().map(WorkspaceId::new).transpose()?,
        permissions: Permissions::parse(&args.permissions)?,
        name: args.name.clone(),
        rate: args.requests_per_minute.map(|most| Rate { most, per: Duration::from_secs(60) }),
        expires_at: args.expires.as_deref().map(Timestamp::parse).transpose()?,
    };
    let engine = open(config).await?.engine;
    let created = engine.access.create(By::OPERATOR, &tenant, new, None).await?;
    let key = Key::of(created.record, Some(created.key));
    output.result(&key, || key.shown_once())
}

async fn list(args: &TenantArgs, config: &Config, output: &Output) -> Result<()> {
    let tenant = args.tenant(config)?;
    let engine = open_existing(config).await?.engine;
    let mut keys = Vec::new();
    let mut page = PageRequest::first(MAX_PAGE)?;
    loop {
        let found = engine.access.list(&tenant, &page).await?;
        keys.extend(found.items.into_iter().map(|key| Key::of(key, None)));
        match found.next_cursor {
            Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
            None => break,
        }
    }
    output.result(&keys, || {
        let rows = keys.iter().map(|key| {
            let state = match (&key.revoked_at, &key.expires_at) {
                (Some(at), _) => format!("revoked {at}"),
                (None, Some(at)) => format!("until {at}"),
                (None, None) => "in force".to_owned(),
            };
            vec![
                key.id.clone(),
                key.user.clone().unwrap_or_else(|| "any".to_owned()),
                key.workspace.clone().unwrap_or_default(),
                key.permissions.join(","),
                key.name.clone(),
                state,
                key.last_used_at.clone().unwrap_or_else(|| "never".to_owned()),
            ]
        });
        let heading = ["key", "user", "workspace", "permits", "name", "state", "last used"];
        match keys.is_empty() {
            true => format!("tenant {tenant} has no keys: `throughline keys create` makes one"),
            false => table(&heading, rows),
        }
    })
}
