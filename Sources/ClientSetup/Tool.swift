/// A program that downloads: how it learns of a proxy, and what makes it trust a certificate authority.
///
/// `setup.sh`, docs/clients.md and `larder doctor` are made from the tools in ToolTable.swift.
package struct Tool: Equatable, Sendable {
    /// A place where a tool looks for something, and what a value there does to the tool's other certificates.
    package enum Source: Equatable, Sendable {
        /// What the system trusts.
        case systemStore
        case variable(String, Effect)
        /// A key in a file of settings.
        case file(String, key: String, Effect)
        /// An option of the command line, or a call of a program's own.
        case option(String, Effect)
    }

    /// Whether the certificates of a setting count beside those of the system.
    package enum Effect: Equatable, Sendable {
        case adds, replaces
        /// Nobody has tried.
        case unknown
        /// The source is one of a proxy.
        case none
    }

    package let name: String
    /// The tool is installed if one of these programs is.
    package let programs: [String]
    /// Where it learns of the proxy for http and https.
    package let proxy: [Source]
    /// What makes it trust an authority.
    package let authority: [Source]
    /// What goes wrong, one sentence or more each.
    package let traps: [String]
    /// Whether each setting was tried alone with the real program (Debian 12), or is known from the program's documentation.
    package let isTried: Bool
    /// How `larder doctor` tests it. Nil if no harmless request is known.
    package let probe: ToolProbe?

    init(
        _ name: String, _ programs: [String], proxy: [Source], authority: [Source], isTried: Bool = true,
        traps: [String] = [], probe: ToolProbe? = nil
    ) {
        self.name = name
        self.programs = programs
        self.proxy = proxy
        self.authority = authority
        self.isTried = isTried
        self.traps = traps
        self.probe = probe
    }
}

/// A variable that `setup.sh` sets.
package struct SetupVariable: Equatable, Sendable {
    package enum Value: Equatable, Sendable {
        /// The URL of the proxy.
        case proxy
        /// The names and addresses that are reached without it.
        case exceptions
        /// The options of a Java virtual machine.
        case javaOptions
        /// The file with the system's certificates and Larder's.
        case bundle
        /// The file with Larder's alone.
        case authority
        case literal(String)
    }

    package let name: String
    package let value: Value
    /// Whether it is set only if there is an authority.
    package let needsAuthority: Bool
}

/// What `setup.sh` does for one tool besides setting variables.
struct SetupStep: Equatable, Sendable {
    enum Scope: String, Equatable, Sendable {
        /// Root sets up the whole machine.
        case system
        case user
    }

    /// The names of tools in the table.
    let tools: [String]
    let scope: Scope
    /// A condition of the shell. The step is left out if it fails.
    let condition: String
    let needsAuthority: Bool
    /// The file that the step writes, as docs/clients.md names it.
    let place: String
    /// Commands of the shell, in the vocabulary of the script.
    let commands: [String]
}
