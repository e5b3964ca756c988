import Admin
import EventLoop
import Glibc
import Message
import Provisioning
import Rules
import Texts

/// `larder recipe hosts`: which hosts the tools on this machine are configured for, as the stanza for the configuration.
func recipeHosts(_ arguments: Arguments, _ console: Console) -> Int32 {
    let found = configuredHosts()
    if arguments.has(.json) {
        var writer = JSONWriter()
        writer.array { json in
            for (recipe, hosts) in found {
                json.object { json in
                    json.member("use", recipe)
                    json.key("hosts")
                    json.array { for host in hosts { $0.string(host) } }
                }
            }
        }
        console.print(String(decoding: writer.bytes, as: UTF8.self))
        return ExitStatus.done
    }
    guard !found.isEmpty else {
        console.error("larder: no tool on this machine says which hosts it uses")
        return ExitStatus.failed
    }
    console.print("recipes:")
    for (recipe, hosts) in found {
        console.print("  - { use: \(recipe), hosts: [ \(hosts.map(yamlName).joined(separator: ", ")) ] }")
    }
    return ExitStatus.done
}

/// The hosts of each recipe for which a tool on this machine is configured, each once.
private func configuredHosts() -> [(recipe: String, hosts: [String])] {
    var found: [(recipe: String, hosts: [String])] = []
    for tool in ToolConfiguration.all {
        let index = found.firstIndex { $0.recipe == tool.recipe } ?? found.endIndex
        if index == found.endIndex { found.append((tool.recipe, [])) }
        for host in tool.configuredHosts() where !found[index].hosts.contains(host) { found[index].hosts.append(host) }
    }
    return found.filter { !$0.hosts.isEmpty }
}

extension ToolConfiguration {
    /// The hosts that files, variables and the tools themselves name, in this order.
    func configuredHosts() -> [String] {
        let fromFiles = files.flatMap(matchingPaths).compactMap { try? readFile($0) }
        let texts = fromFiles.map { hosts(in: String(decoding: $0, as: UTF8.self)) }
        let values = variables.compactMap(environmentValue) + commands.map(output)
        let all = (texts.flatMap(\.self) + values.flatMap { hostsOfURLs(in: $0) }).filter { HostPattern($0) != nil }
        return all.enumerated().filter { all.firstIndex(of: $1) == $0 }.map(\.element)
    }
}

private func environmentValue(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
}

/// The files that a path with `~` and `*` stands for.
private func matchingPaths(_ pattern: String) -> [String] {
    var result = unsafe glob_t()
    defer { unsafe globfree(&result) }
    guard unsafe glob(pattern, GLOB_TILDE, nil, &result) == 0 else { return [] }
    return unsafe (0..<Int(result.gl_pathc)).compactMap { index in
        unsafe result.gl_pathv[index].map { unsafe String(cString: $0) }
    }
}

/// What a command prints. The commands are constants. Empty if the tool is not installed.
private func output(of command: String) -> String {
    guard let stream = unsafe popen("\(command) 2>/dev/null </dev/null", "r") else { return "" }
    defer { _ = unsafe pclose(stream) }
    var bytes = [UInt8](repeating: 0, count: 64 << 10)
    let count = unsafe bytes.withUnsafeMutableBytes { unsafe fread($0.baseAddress, 1, $0.count, stream) }
    return String(decoding: bytes[..<count], as: UTF8.self)
}
