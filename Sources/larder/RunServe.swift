import Admin
import EventLoop
import Settings

/// Wires the rooms and runs the proxy until it is told to stop.
///
/// The control thread's part is ready in `openAdmin`: it wants the running proxy as a `House` and the control thread's
/// loop, and its server is closed after the workers have drained. The server room is still to be put in here.
/// - Parameter reload: reads the configuration again, for SIGHUP.
func runServe(_ configuration: Configuration, reload: () -> ConfigurationReading, _ console: Console) -> Int32 {
    console.error("larder: this build has no server room yet")
    return ExitStatus.failed
}
