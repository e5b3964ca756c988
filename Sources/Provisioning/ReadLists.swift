package import Access
package import EventLoop
import Rules
package import Server

/// Reads the files with values of `access.rules`. Each file is read once for each kind of value, however many rules name it.
struct ListReading {
    private var hosts: [String: HostSet] = [:]
    private var addresses: [String: AddressIndex] = [:]
    private var names: [String: Set<String>] = [:]

    /// The settings with the contents of their files. Blocks.
    mutating func filled(_ settings: AccessSettings) throws(ProvisioningFault) -> AccessSettings {
        var settings = settings
        for index in settings.rules.indices where !settings.rules[index].conditions.listFiles.isEmpty {
            try fill(&settings.rules[index])
        }
        return settings
    }

    private mutating func fill(_ rule: inout AccessRule) throws(ProvisioningFault) {
        let action =
            switch rule.effect {
            case .allow: "allow"
            case .deny: "deny"
            case .redirect: "redirect"
            case .authenticate: "authenticate"
            }
        let key = "access.rules[\(rule.number)].\(action)"
        try Provisioning.fill(&rule.conditions.hostLists, &hosts, "\(key).host", ListText.hosts)
        try Provisioning.fill(&rule.conditions.addressLists, &addresses, "\(key).address", ListText.addresses)
        try Provisioning.fill(&rule.conditions.clientLists, &addresses, "\(key).client", ListText.addresses)
        try Provisioning.fill(&rule.conditions.userLists, &names, "\(key).user", ListText.names)
    }

}

/// The most bytes that a file with values can have.
private let listBytesMax = 256 << 20

private func fill<Content>(
    _ lists: inout [ListFile<Content>], _ known: inout [String: Content], _ key: String,
    _ parse: ([UInt8]) throws(ListText.Fault) -> Content
) throws(ProvisioningFault) {
    for index in lists.indices {
        let file = lists[index].file
        if known[file] == nil {
            let text: [UInt8]
            do throws(FileError) {
                text = try readFile(file, bytesMax: listBytesMax)
            } catch { throw ProvisioningFault(key, error.text) }
            do throws(ListText.Fault) {
                known[file] = try parse(text)
            } catch { throw ProvisioningFault(key, "\(file):\(error)") }
        }
        if let content = known[file] { lists[index].content = content }
    }
}

/// The settings with the contents of the files that their rules name. Blocks.
package func readLists(_ settings: AccessSettings) throws(ProvisioningFault) -> AccessSettings {
    var reading = ListReading()
    return try reading.filled(settings)
}

extension AccessSettings {
    /// The files that rules name, each once.
    package var listFiles: [String] { Set(rules.flatMap(\.conditions.listFiles)).sorted() }
}

/// Looks every two seconds whether a file that a rule names has changed, and puts the new contents into effect. If they have a fault, the earlier ones
/// stay in force. Used on the control thread, so no worker waits.
package final class ListWatch {
    private let proxy: Proxy
    private let pacFiles: PACFiles
    private var files: [String: WatchedFile] = [:]
    private let repeating: RepeatingTimer

    static let pause: Duration = .seconds(2)

    /// - Parameter pacFiles: those of the proxy: its next snapshot has them, too.
    package init(of proxy: Proxy, _ pacFiles: PACFiles, on loop: EventLoop) {
        self.proxy = proxy
        self.pacFiles = pacFiles
        repeating = RepeatingTimer(on: loop, every: ListWatch.pause)
    }

    package func start() {
        watch(proxy.snapshot.configuration.access.listFiles)
        repeating.start { [unowned self] in look() }
    }

    package func stop() { repeating.stop() }

    private func look() {
        let named = proxy.snapshot.configuration.access.listFiles
        guard !named.isEmpty || !files.isEmpty else { return }
        let now = MonotonicTime.read()
        var news: [String] = []
        for file in named where files[file]?.hasChanged(at: now) == true { news.append(file) }
        watch(named)
        if !news.isEmpty { readAgain(news) }
    }

    private func readAgain(_ changed: [String]) {
        do throws(ProvisioningFault) {
            let snapshot = proxy.snapshot
            proxy.adopt(try makeSnapshot(snapshot.configuration, pacFiles, after: snapshot))
            Diagnostics.info("access rules: \(changed.joined(separator: ", ")) has changed and was read")
        } catch {
            Diagnostics.warning("access rules: \(error); the earlier lists stay in force")
        }
    }

    private func watch(_ named: [String]) {
        let now = MonotonicTime.read()
        for file in named where files[file] == nil { files[file] = WatchedFile(file, pause: .zero, now: now) }
        files = files.filter { named.contains($0.key) }
    }
}
