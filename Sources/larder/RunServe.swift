import Admin
import EventLoop
import Settings

/// Wires the rooms and runs the proxy until it is told to stop.
///
/// - Parameter reload: reads the configuration again, for SIGHUP.
func runServe(_ configuration: Configuration, reload: () -> ConfigurationReading, _ console: Console) -> Int32 {
    console.error("larder: this build has no server room yet")
    return ExitStatus.failed
}
