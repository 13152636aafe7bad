package dev.hapax.once.testing;

import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServlet;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/** Tomcat on a free port. */
public final class Container {
    private Container() {}

    /** Serves all paths by a servlet behind a filter; its files are in a folder of this name. */
    public static Tomcat serve(String folder, HttpServlet servlet, Filter filter) throws LifecycleException {
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir("target/" + folder);
        tomcat.setPort(0);
        Context context = tomcat.addContext("", null);
        Tomcat.addServlet(context, "servlet", servlet);
        context.addServletMappingDecoded("/*", "servlet");
        FilterDef definition = new FilterDef();
        definition.setFilterName("filter");
        definition.setFilter(filter);
        context.addFilterDef(definition);
        FilterMap everywhere = new FilterMap();
        everywhere.setFilterName("filter");
        everywhere.addURLPattern("/*");
        context.addFilterMap(everywhere);
        tomcat.start();
        return tomcat;
    }
}
