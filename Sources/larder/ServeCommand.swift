import Settings

/// `larder serve`
func serveCommand(_ arguments: Arguments, _ console: Console) throws(UsageError) -> Int32 {
    guard arguments.words.isEmpty else {
        throw UsageError("serve takes no \"\(arguments.words[0])\"", hint: "larder serve --config FILE")
    }
    let reading = readConfiguration(arguments)
    for error in reading.errors { console.error("larder: \(error)") }
    showWarnings(reading, console)
    guard let configuration = reading.configuration else { return ExitStatus.usage }
    return runServe(configuration, reload: { readConfiguration(arguments) }, console)
}
