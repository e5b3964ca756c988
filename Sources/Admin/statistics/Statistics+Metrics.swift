extension Statistics {
    /// The body of `GET /metrics`.
    package func prometheus() -> [UInt8] {
        var metrics = MetricsWriter()
        for section in StatisticsSection.allCases where section != .fleet && section != .owners {
            metrics.write(section.figures, of: self, omittingZeros: section.isTally)
        }
        if let node = fleet.node {
            metrics.write(fleetFigures, prefix: "fleet_", by: "node", [(node, fleet)])
            metrics.write(ownerFigures, prefix: "fleet_peer_", by: "node", [(node, owners)])
        }
        metrics.write(memoryFigures, prefix: "zone_memory_", by: "zone", zones.map { ($0.name, $0.memory) })
        let disks = zones.compactMap { zone in zone.disk.map { (zone.name, $0) } }
        if !disks.isEmpty { metrics.write(diskFigures, prefix: "disk_", by: "zone", disks) }
        metrics.write(workerFigures, prefix: "worker_", by: "worker", workers.map { (String($0.number), $0.counts) })
        if !ecosystems.isEmpty {
            metrics.write(ecosystemFigures, prefix: "recipe_", by: "recipe", ecosystems.map { ($0.name, $0.counts) })
        }
        if !limitRules.isEmpty {
            metrics.write(limitRuleFigures, prefix: "limit_", by: "rule", limitRules.map { ($0.name, $0.use) })
        }
        if !pacFiles.isEmpty {
            metrics.write(pacFileFigures, prefix: "pac_file_", by: "path", pacFiles.map { ($0.path, $0) })
        }
        return metrics.bytes
    }
}

extension MetricsWriter {
    /// Figures of the process. Those of one family are written together, where the first of them stands.
    fileprivate mutating func write(_ figures: [Figure<Statistics>], of statistics: Statistics, omittingZeros: Bool) {
        var written: Set<MetricFamily> = []
        for figure in figures {
            guard let metric = figure.metric else { continue }
            guard let family = metric.family else {
                let value = figure.value(statistics)
                self.family(
                    metric.fullName, metric.kind, figure.help, label: metric.textLabel,
                    [(label: value.text ?? "", value: value.sample)])
                continue
            }
            guard written.insert(family).inserted else { continue }
            let samples = figures.filter { $0.metric?.family == family }
                .map { (label: $0.metric?.labelValue ?? "", value: $0.value(statistics)) }
                .filter { !omittingZeros || !$0.value.isZero }
            self.family(
                metric.fullName, metric.kind, family.help, label: family.label,
                samples.map { (label: $0.label, value: $0.value.sample) })
        }
    }

    /// Figures of several zones or workers: each is a family, with a sample for each of `subjects`.
    fileprivate mutating func write<Subject>(
        _ figures: [Figure<Subject>], prefix: String, by label: String, _ subjects: [(name: String, subject: Subject)]
    ) {
        for figure in figures {
            guard let metric = figure.metric?.prefixed(prefix) else { continue }
            family(
                metric.fullName, metric.kind, figure.help, label: label,
                subjects.map { (label: $0.name, value: figure.value($0.subject).sample) })
        }
    }
}

extension FigureValue {
    fileprivate var text: String? { if case .text(let text) = self { text } else { nil } }

    fileprivate var sample: UInt64 {
        switch self {
        case .count(let count): count
        case .flag(let flag), .isOn(let flag): flag ? 1 : 0
        case .text: 1
        case .time(let seconds): UInt64(clamping: seconds)
        case .ratio: preconditionFailure("a ratio has no sample")
        }
    }
}
