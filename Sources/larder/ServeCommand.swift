import Provisioning
import Settings

/// `larder serve`
func serveCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    guard arguments.words.isEmpty else {
        throw UsageError("serve takes no \"\(arguments.words[0])\"", hint: "larder serve --config FILE")
    }
    var reading = readConfiguration(arguments)
    reading.chooseDisk()
    for error in reading.errors { console.error("larder: \(error)") }
    showWarnings(reading, console)
    guard reading.configuration != nil else { return ExitStatus.usage }
    return runServe(reading, reload: { readConfiguration(arguments) }, console)
}
