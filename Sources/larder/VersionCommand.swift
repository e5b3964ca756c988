import Admin

/// `larder version [--json]`
func versionCommand(_ arguments: Arguments, _ console: Console) -> Int32 {
    guard arguments.has(.json) else {
        console.print("larder \(larderVersion)")
        return ExitStatus.done
    }
    var writer = JSONWriter()
    writer.object { $0.member("version", larderVersion) }
    console.print(String(decoding: writer.bytes, as: UTF8.self))
    return ExitStatus.done
}
