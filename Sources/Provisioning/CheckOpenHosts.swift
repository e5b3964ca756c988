import Access
import PublicSuffixes
import Rules
import Settings

/// What allow rules open although it belongs to others. Names the setting and what is wrong with it.
struct OpenHosts {
    /// What `larder check` warns of.
    private(set) var warnings: [ProvisioningFault] = []
    private let list = PublicSuffixList.system

    /// - Throws: if a rule allows all names below a suffix of a registry, such as `*.com`, or of a company that gives names to its customers, such as
    ///   `*.github.io`: whoever registers a name is allowed then. For the latter a rule may name paths or methods, or say that this is meant.
    init(_ settings: AccessSettings) throws(ProvisioningFault) {
        for rule in settings.rules where rule.isAllow && !rule.isReport { try examine(rule) }
    }

    private mutating func examine(_ rule: AccessRule) throws(ProvisioningFault) {
        let key = "access.rules[\(rule.number)].allow.host"
        let conditions = rule.conditions
        let listed = conditions.hostLists.flatMap { list in list.content.wildcards.map { ($0, " in \(list.file)") } }
        for (pattern, place) in conditions.hosts.map({ ($0, "") }) + listed {
            switch pattern {
            case .any, .address: break
            case .below(let suffix):
                let domain = String(suffix.dropFirst())
                switch list.section(of: domain) {
                case .registries:
                    throw ProvisioningFault(
                        key, "\(pattern)\(place) allows every name that anybody registers below \(domain)",
                        hint: "name the domains that are needed, or use \"*\" to allow every host")
                case .companies:
                    if rule.isForSharedNames { continue }
                    guard rule.isNarrowed else {
                        throw ProvisioningFault(
                            key, "\(pattern)\(place) allows every name that anybody can have below \(domain)",
                            hint:
                                "name the hosts that are needed, or their paths or methods; shared: yes if all of them are meant"
                        )
                    }
                    warnings.append(
                        ProvisioningFault(
                            key, "\(pattern)\(place): anybody can have a name below \(domain)",
                            hint: "name the hosts that are needed"))
                case nil: warn(of: domain, pattern, conditions, key)
                }
            case .exact(let name): warn(of: name, pattern, conditions, key)
            }
        }
    }

    /// A host on which anybody can publish should be allowed for some paths or methods only.
    private mutating func warn(
        of name: String, _ pattern: HostPattern, _ conditions: RuleConditions, _ key: String
    ) {
        guard conditions.paths.isEmpty, conditions.methods.isEmpty,
            OpenHosts.sharedHosts.contains(name) || list.section(of: name) == .companies
        else { return }
        warnings.append(
            ProvisioningFault(
                key, "\(pattern): anybody can publish and collect data on this host",
                hint: "allow the paths or the methods that are needed"))
    }

    /// Hosts on which anybody can publish under a path, and which the public suffix list therefore does not have. docs/access.md lists them.
    static let sharedHosts: Set = [
        "api.telegram.org", "bitbucket.org", "codeberg.org", "discord.com", "docs.google.com", "drive.google.com",
        "dropbox.com", "gist.github.com", "github.com", "gitlab.com", "hooks.slack.com", "pastebin.com",
        "translate.google.com", "web.archive.org", "www.dropbox.com",
    ]
}

extension AccessRule {
    /// Whether the rule says what may be done there. A tunnel hides paths and methods, unless it is opened.
    fileprivate var isNarrowed: Bool {
        if conditions.methods == ["CONNECT"] { return intercept == true }
        return !conditions.paths.isEmpty || (!conditions.methods.isEmpty && !conditions.methods.contains("CONNECT"))
    }
}

extension ConfigurationReading {
    /// Adds what is wrong with the hosts that access rules allow, or doubtful. Files of rules count if they have been read.
    package mutating func checkOpenHosts() {
        guard let access = configuration?.access else { return }
        do throws(ProvisioningFault) {
            warnings += try OpenHosts(access).warnings.map { problem($0) }
        } catch { reject([error]) }
    }
}
