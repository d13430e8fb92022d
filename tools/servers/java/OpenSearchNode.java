package tools.servers;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.index.mapper.MapperExtrasPlugin;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.join.ParentJoinPlugin;
import org.opensearch.knn.plugin.KNNPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.transport.Netty4Plugin;

/** OpenSearch 2 on the class path, whose test distribution has too few modules to be installed. Arguments: home and configuration folder. */
public final class OpenSearchNode extends Node {
    private static final List<Class<? extends Plugin>> PLUGINS = List.of(
            Netty4Plugin.class,
            CommonAnalysisPlugin.class,
            PainlessPlugin.class,
            ParentJoinPlugin.class,
            MapperExtrasPlugin.class,
            ReindexPlugin.class,
            KNNPlugin.class);

    private OpenSearchNode(Environment environment) {
        super(environment, PLUGINS, false);
    }

    public static void main(String[] arguments) throws Exception {
        Settings home = Settings.builder().put("path.home", arguments[0]).build();
        OpenSearchNode node =
                new OpenSearchNode(InternalSettingsPreparer.prepareEnvironment(home, Map.of(), Path.of(arguments[1]), () -> "node"));
        CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (Exception failed) {
                failed.printStackTrace();
            }
            closed.countDown();
        }));
        node.start();
        closed.await();
    }
}
