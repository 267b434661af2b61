//! One client on standard input and output, which is on this machine and so the owner's.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::service::RequestContext;
use rmcp::transport::stdio_pipes;
use tokio::sync::Mutex;

use super::{Agents, ended};
use crate::serve::{ANSWERERS, Reading, Refresh, Stop};
use annals_core::{Result, Time, from_address};

/// How long a pending answer may take once the client is gone.
const GRACE: Duration = Duration::from_secs(1);
/// How long a client may take to name its folders.
const PATIENCE: Duration = Duration::from_secs(2);

/// What an agent's client starts.
pub struct AgentSetup {
    /// The archive's folder.
    pub data_dir: PathBuf,
    /// The folder that the client runs in.
    pub folder: Option<String>,
    pub refresh: Option<Refresh>,
    pub now: fn() -> Time,
}

/// Where the client works: the folder that it names, or the one it was started in.
pub(super) struct Folder {
    started_in: Option<String>,
    /// Asked for once, until the client says that they changed.
    roots: Mutex<Option<Option<String>>>,
}

impl Folder {
    pub(super) async fn get(&self, context: &RequestContext<RoleServer>) -> Option<String> {
        let offers_roots = context.client_capabilities().is_some_and(|client| client.roots.is_some());
        if !offers_roots {
            return self.started_in.clone();
        }
        let mut roots = self.roots.lock().await;
        if roots.is_none() {
            *roots = Some(first_root(context).await);
        }
        roots.clone().flatten().or_else(|| self.started_in.clone())
    }

    pub(super) async fn forget_roots(&self) {
        *self.roots.lock().await = None;
    }
}

/// The first folder that a client names.
#[expect(deprecated, reason = "the protocol gives them up, but clients still offer them")]
async fn first_root(context: &RequestContext<RoleServer>) -> Option<String> {
    let listed = tokio::time::timeout(PATIENCE, context.peer.list_roots()).await.ok()?.ok()?;
    let mut paths = listed.roots.iter().filter_map(|root| from_address(root.uri.strip_prefix("file://")?));
    paths.find(|path| path.starts_with('/'))
}

/// Answers the client on standard input and output until it closes them.
pub fn serve_agent(setup: AgentSetup) -> Result<()> {
    let reading = Arc::new(Reading::of_archive(&setup.data_dir, setup.refresh, setup.now)?);
    let folder = Folder { started_in: setup.folder, roots: Mutex::default() };
    let agents = Agents { reading, folder: Some(Arc::new(folder)) };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(ANSWERERS + 3)
        .enable_all()
        .build()?;
    let served = runtime.block_on(async {
        let mut stop = Stop::listen()?;
        let answering = async {
            let running = rmcp::serve_server(agents, stdio_pipes()).await.map_err(ended)?;
            running.waiting().await.map_err(ended)
        };
        tokio::select! {
            ended = answering => ended.map(drop),
            () = stop.received() => Ok(()),
        }
    });
    // A read that nothing ends must not keep the program from ending.
    runtime.shutdown_timeout(GRACE);
    served
}
