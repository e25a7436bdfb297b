// Descriptors, Harris responses and ICP of PCL for a small cloud, as an oracle for tests/geometry/test_descriptors.py
// and tests/nodes/registration/test_icp.py.
//
// Made again by (Debian: apt-get install g++ libpcl-dev; PCL 1.13):
//   python tests/oracles/pcl_cloud.py > cloud.txt
//   g++ -O2 -std=c++17 tests/oracles/pcl_descriptors.cpp -o pcl_descriptors $(pkg-config --cflags eigen3) \
//       -I/usr/include/pcl-1.13 -lpcl_common -lpcl_features -lpcl_keypoints -lpcl_kdtree -lpcl_search \
//       -lpcl_registration -lpcl_filters -lpcl_sample_consensus -lboost_system -llz4
//   ./pcl_descriptors cloud.txt tests/oracles/pcl_descriptors.txt
// With a third argument, a number of keypoints, it only prints how long SHOT and PFH of so many take.
//
// Input: a line "points RADIUS HARRIS_RADIUS KEYPOINTS ICP_REACH", then x y z nx ny nz of each point, then twelve
// numbers: the upper rows of the transform by which the cloud is moved before ICP brings it back.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include <pcl/features/pfh.h>
#include <pcl/features/shot.h>
#include <pcl/keypoints/harris_3d.h>
#include <pcl/point_types.h>
#include <pcl/registration/correspondence_rejection_trimmed.h>
#include <pcl/registration/icp.h>
#include <pcl/common/transforms.h>
#include <pcl/search/kdtree.h>

using Cloud = pcl::PointCloud<pcl::PointXYZ>;
using Normals = pcl::PointCloud<pcl::Normal>;

// The Harris response of every point, which PCL gives only without suppression.
static pcl::PointCloud<pcl::PointXYZI> harris(const Cloud::Ptr& cloud, const Normals::Ptr& normals, float radius)
{
    pcl::HarrisKeypoint3D<pcl::PointXYZ, pcl::PointXYZI, pcl::Normal> detector;
    detector.setNonMaxSupression(false);
    detector.setRefine(false);
    detector.setNumberOfThreads(1);
    detector.setRadius(radius);
    detector.setRadiusSearch(radius);
    detector.setInputCloud(cloud);
    detector.setNormals(normals);
    pcl::PointCloud<pcl::PointXYZI> found;
    detector.compute(found);
    return found;
}

template <typename Estimation, typename Out>
static double describe(const Cloud::Ptr& cloud, const Normals::Ptr& normals, const pcl::IndicesPtr& rows, float radius,
                       pcl::PointCloud<Out>& found)
{
    Estimation estimation;
    estimation.setInputCloud(cloud);
    estimation.setIndices(rows);
    estimation.setSearchSurface(cloud);
    estimation.setInputNormals(normals);
    estimation.setSearchMethod(pcl::search::KdTree<pcl::PointXYZ>::Ptr(new pcl::search::KdTree<pcl::PointXYZ>));
    estimation.setRadiusSearch(radius);
    const auto start = std::chrono::steady_clock::now();
    estimation.compute(found);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Write where ICP is after 1, 3 and 10 steps; without any other stop, so that steps can be compared.
template <typename Icp>
static void follow(Icp& icp, const char* name, std::FILE* out)
{
    for (int iterations : {1, 3, 10}) {
        icp.setMaximumIterations(iterations);
        icp.setTransformationEpsilon(0);
        icp.setEuclideanFitnessEpsilon(-1e30);
        typename Icp::PointCloudSource aligned;
        icp.align(aligned);
        const Eigen::Matrix4f T = icp.getFinalTransformation();
        std::fprintf(out, "%s %d", name, iterations);
        for (int r = 0; r < 3; ++r)
            for (int c = 0; c < 4; ++c)
                std::fprintf(out, " %.8g", T(r, c));
        std::fprintf(out, "\n");
    }
}

// CloudCompare keeps the nearest pairs, libpointmatcher too, and fits those to planes: with PCL's parts.
static void follow_trimmed(const Cloud& cloud, const Normals& normals, const Eigen::Matrix4f& moved, std::FILE* out)
{
    using Surface = pcl::PointCloud<pcl::PointNormal>;
    Surface::Ptr sink(new Surface), source(new Surface);
    pcl::concatenateFields(cloud, normals, *sink);
    pcl::transformPointCloudWithNormals(*sink, *source, moved);
    pcl::registration::CorrespondenceRejectorTrimmed::Ptr trim(new pcl::registration::CorrespondenceRejectorTrimmed);
    trim->setOverlapRatio(0.85f);
    pcl::IterativeClosestPoint<pcl::PointNormal, pcl::PointNormal> points;
    points.setTransformationEstimation(pcl::make_shared<
        pcl::registration::TransformationEstimationSVD<pcl::PointNormal, pcl::PointNormal>>());
    pcl::IterativeClosestPointWithNormals<pcl::PointNormal, pcl::PointNormal> planes;
    points.setInputSource(source), planes.setInputSource(source);
    points.setInputTarget(sink), planes.setInputTarget(sink);
    points.addCorrespondenceRejector(trim), planes.addCorrespondenceRejector(trim);
    follow(points, "trimmed", out);
    follow(planes, "planes", out);
}

int main(int argc, char** argv)
{
    std::ifstream in(argv[1]);
    int count, keypoints;
    float radius, corner, reach;
    in >> count >> radius >> corner >> keypoints >> reach;
    Cloud::Ptr cloud(new Cloud);
    Normals::Ptr normals(new Normals);
    for (int i = 0; i < count; ++i) {
        pcl::PointXYZ p;
        pcl::Normal n;
        in >> p.x >> p.y >> p.z >> n.normal_x >> n.normal_y >> n.normal_z;
        cloud->push_back(p);
        normals->push_back(n);
    }
    Eigen::Matrix4f moved = Eigen::Matrix4f::Identity();
    for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 4; ++c)
            in >> moved(r, c);
    const bool timing = argc > 3;
    if (timing)
        keypoints = std::atoi(argv[3]);
    pcl::IndicesPtr rows(new pcl::Indices);
    for (int k = 0; k < keypoints; ++k)
        rows->push_back(static_cast<long>(k) * count / keypoints);

    pcl::PointCloud<pcl::SHOT352> shots;
    pcl::PointCloud<pcl::PFHSignature125> pfhs;
    const double s = describe<pcl::SHOTEstimation<pcl::PointXYZ, pcl::Normal, pcl::SHOT352>>(cloud, normals, rows, radius, shots);
    const double f = describe<pcl::PFHEstimation<pcl::PointXYZ, pcl::Normal, pcl::PFHSignature125>>(cloud, normals, rows, radius, pfhs);
    if (timing) {
        std::printf("%d keypoints of %d points: SHOT %.3f s, PFH %.3f s\n", keypoints, count, s, f);
        return 0;
    }
    std::FILE* out = std::fopen(argv[2], "w");
    std::fprintf(out, "# PCL %s: what row it is, its number, its values\n", PCL_VERSION_PRETTY);
    for (int k = 0; k < keypoints; ++k) {
        std::fprintf(out, "shot %d", (*rows)[k]);
        for (float value : shots[k].descriptor)
            value == 0 ? std::fprintf(out, " 0") : std::fprintf(out, " %.6g", value);
        std::fprintf(out, "\npfh %d", (*rows)[k]);
        for (float value : pfhs[k].histogram)
            value == 0 ? std::fprintf(out, " 0") : std::fprintf(out, " %.6g", value);
        std::fprintf(out, "\n");
    }
    const auto corners = harris(cloud, normals, corner);
    std::fprintf(out, "harris %zu", corners.size());
    for (const auto& point : corners)
        std::fprintf(out, " %.6g", point.intensity);
    std::fprintf(out, "\n");

    Cloud::Ptr source(new Cloud);
    pcl::transformPointCloud(*cloud, *source, moved);
    pcl::IterativeClosestPoint<pcl::PointXYZ, pcl::PointXYZ> icp;
    icp.setInputSource(source);
    icp.setInputTarget(cloud);
    icp.setMaxCorrespondenceDistance(reach);
    follow(icp, "icp", out);
    follow_trimmed(*cloud, *normals, moved, out);
    std::fclose(out);
    return 0;
}
