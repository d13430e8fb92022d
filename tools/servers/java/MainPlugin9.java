package tools.servers;

import java.util.Collection;
import java.util.List;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.elasticsearch.cluster.node.DiscoveryNodes;
import org.elasticsearch.features.NodeFeature;
import org.elasticsearch.rest.RestHandler;

/** {@link Main} for Elasticsearch 9. */
public final class MainPlugin9 extends BasePlugin {
    @Override
    public Collection<ActionHandler> getActions() {
        return List.of(new ActionHandler(Main.ACTION, Main.Action.class));
    }

    @Override
    public Collection<RestHandler> getRestHandlers(
            RestHandlersServices services, Supplier<DiscoveryNodes> nodes, Predicate<NodeFeature> features) {
        return List.of(new Main.Handler());
    }
}
